package rig

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"redlock-proxy/integration/layer"
)

// SmallDisk gives a server that is not started yet a disk of its own: a file system in memory, which only root can make.
func (r *Server) SmallDisk(t testing.TB) {
	t.Helper()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", r.dir).CombinedOutput(); err != nil {
		layer.Missing(t, "root, to mount a small disk: "+strings.TrimSpace(string(out)))
	}
	t.Cleanup(func() {
		r.Proc.Kill()
		if out, err := exec.Command("umount", r.dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
}

func (r *Server) ballast() string { return filepath.Join(r.dir, "ballast") }

// FillDisk leaves the server no room on its disk.
func (r *Server) FillDisk(t testing.TB) {
	t.Helper()
	file, err := os.Create(r.ballast())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for err == nil {
		_, err = file.Write(make([]byte, 4<<10))
	}
}

// EmptyDisk gives it room again.
func (r *Server) EmptyDisk(t testing.TB) {
	t.Helper()
	if err := os.Remove(r.ballast()); err != nil {
		t.Fatal(err)
	}
}

// LoseDisk makes the server unable to save, and waits until it has tried.
func (r *Server) LoseDisk(t testing.TB) {
	t.Helper()
	ctx := t.Context()
	err := errors.Join(os.RemoveAll(r.dir), r.Direct.ConfigSet(ctx, "save", "3600 1000000").Err(), r.Direct.BgSave(ctx).Err())
	if err != nil {
		t.Fatal(err)
	}
	WaitFor(t, r.Name+" cannot save", func() error {
		info, err := r.Direct.Info(ctx, "persistence").Result()
		if err == nil && !strings.Contains(info, "rdb_last_bgsave_status:err") {
			err = errors.New("it has not failed yet")
		}
		return err
	})
}
