package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"redlock-proxy/integration/child"
)

// startEtcdService starts three members of an etcd with its default timeouts.
func startEtcdService(b *bench) *runningService {
	const members = 3
	var clientURLs, peerURLs, cluster []string
	for i := range members {
		for _, urls := range []*[]string{&clientURLs, &peerURLs} {
			port := must(child.FreePort())
			*urls = append(*urls, "http://"+child.Loopback(port))
		}
		cluster = append(cluster, fmt.Sprintf("m%d=%s", i, peerURLs[i]))
	}
	var servers []*child.Process
	for i := range members {
		server := must(child.Start(fmt.Sprintf("etcd %d", i), "etcd", "--name", fmt.Sprintf("m%d", i),
			"--data-dir", filepath.Join(b.scratch, "etcd"+strings.TrimPrefix(peerURLs[i], "http://")),
			"--listen-client-urls", clientURLs[i], "--advertise-client-urls", clientURLs[i],
			"--listen-peer-urls", peerURLs[i], "--initial-advertise-peer-urls", peerURLs[i],
			"--initial-cluster", strings.Join(cluster, ",")))
		b.atEnd(server.Kill)
		servers = append(servers, server)
	}
	leader := -1
	for i, server := range servers {
		b.until(server, "has a leader", func() error {
			var status struct {
				Header struct {
					Member string `json:"member_id"`
				}
				Leader string
			}
			err := postEtcd(clientURLs[i]+"/v3/maintenance/status", struct{}{}, &status)
			if err == nil && (status.Leader == "" || status.Leader == "0") {
				err = fmt.Errorf("there is no leader")
			}
			if err == nil && status.Leader == status.Header.Member {
				leader = i
			}
			return err
		})
	}
	if leader < 0 {
		panic(failure{errors.New("no member of the etcd says that it leads")})
	}
	s := &runningService{kill: servers[leader].Kill}
	for i := range gapClients {
		client := &etcdLocks{urls: clientURLs, at: i}
		var lease struct{ ID string }
		check(client.post("/v3/lease/grant", map[string]any{"TTL": int(lockTTL.Seconds())}, &lease))
		client.lease = lease.ID
		s.clients = append(s.clients, client)
	}
	return s
}

// etcdLocks is a client of etcd's HTTP gateway. A lock is a key that must not exist yet, with
// the client's lease. After an error the client asks the next member.
type etcdLocks struct {
	urls  []string
	at    int
	lease string
}

func (e *etcdLocks) acquire(key string) (bool, error) {
	name := base64.StdEncoding.EncodeToString([]byte(key))
	absent := []map[string]any{{"key": name, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}}
	put := []map[string]any{{"requestPut": map[string]string{"key": name, "value": name, "lease": e.lease}}}
	var answer struct{ Succeeded bool }
	err := e.post("/v3/kv/txn", map[string]any{"compare": absent, "success": put}, &answer)
	return answer.Succeeded, err
}

func (e *etcdLocks) release(key string) error {
	return e.post("/v3/kv/deleterange", map[string]string{"key": base64.StdEncoding.EncodeToString([]byte(key))}, &struct{}{})
}

func (e *etcdLocks) post(path string, question, answer any) error {
	err := postEtcd(e.urls[e.at%len(e.urls)]+path, question, answer)
	if err != nil {
		e.at++
	}
	return err
}

// postEtcd gives etcd a second. A member whose leader has died keeps questions for longer, and
// the next try may come after the election.
func postEtcd(url string, question, answer any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: time.Second}
	reply, err := client.Post(url, "application/json", bytes.NewReader(text))
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, reply.Status)
	}
	return json.NewDecoder(reply.Body).Decode(answer)
}
