package browser

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/child"
	"redlock-proxy/integration/rig"
)

// chromium is a browser with one tab. One goroutine at a time may use it.
type chromium struct {
	to       *os.File
	from     *os.File
	messages *bufio.Reader
	session  string // of the tab
	calls    int
	troubles []string // exceptions and errors that the tab has reported
}

// startChromium starts a browser that is killed when the test ends. It runs without its
// sandbox, which root cannot have: it shows nothing but the proxy's own page.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	itsIn, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, itsOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var log child.Log
	program := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	program.ExtraFiles = []*os.File{itsIn, itsOut} // its descriptors 3 and 4
	program.Stdout, program.Stderr = &log, &log
	child.EndWithParent(program)
	program.SysProcAttr.Setpgid = true
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	itsIn.Close()
	itsOut.Close()
	t.Cleanup(func() {
		to.Close()
		from.Close()
		_ = syscall.Kill(-program.Process.Pid, syscall.SIGKILL) // the browser and its processes
		_ = program.Wait()
		if t.Failed() {
			t.Logf("the browser's last lines:\n%s", log.Tail(20))
		}
	})
	c := &chromium{to: to, from: from, messages: bufio.NewReader(from)}
	var target struct{ TargetID string }
	c.call(t, "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var tab struct{ SessionID string }
	c.call(t, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &tab)
	c.session = tab.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		c.call(t, domain+".enable", nil, nil)
	}
	return c
}

// A message is a reply of the browser, or an event.
type message struct {
	ID     int
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct{ Message string }
}

// call calls a method of the DevTools protocol and waits for its result.
func (c *chromium) call(t *testing.T, method string, params map[string]any, result any) {
	t.Helper()
	c.calls++
	request := map[string]any{"id": c.calls, "method": method}
	if params != nil {
		request["params"] = params
	}
	if c.session != "" {
		request["sessionId"] = c.session
	}
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(rig.Patience)
	_ = c.to.SetWriteDeadline(deadline)
	_ = c.from.SetReadDeadline(deadline)
	if _, err := c.to.Write(append(text, 0)); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	for {
		m, err := c.read()
		switch {
		case err != nil:
			t.Fatalf("%s: %v", method, err)
		case m.ID == 0:
			c.hear(m)
		case m.ID != c.calls:
			t.Fatalf("%s: the answer is of call %d, not %d", method, m.ID, c.calls)
		case m.Error != nil:
			t.Fatalf("%s: %s", method, m.Error.Message)
		case result != nil:
			if err := json.Unmarshal(m.Result, result); err != nil {
				t.Fatalf("%s: %v", method, err)
			}
			return
		default:
			return
		}
	}
}

func (c *chromium) read() (m message, err error) {
	text, err := c.messages.ReadBytes(0)
	if err == io.EOF {
		return m, fmt.Errorf("the browser has ended")
	}
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(text[:len(text)-1], &m)
}

// hear keeps what the tab reports as wrong: exceptions, and errors such as a violated policy.
func (c *chromium) hear(m message) {
	switch m.Method {
	case "Runtime.exceptionThrown":
		c.troubles = append(c.troubles, string(m.Params))
	case "Log.entryAdded":
		var entry struct{ Entry struct{ Level string } }
		if json.Unmarshal(m.Params, &entry) == nil && entry.Entry.Level == "error" {
			c.troubles = append(c.troubles, string(m.Params))
		}
	}
}

// evaluate returns the value of an expression in the tab.
func (c *chromium) evaluate(t *testing.T, expression string, value any) {
	t.Helper()
	var result struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	c.call(t, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &result)
	if result.ExceptionDetails != nil {
		t.Fatalf("%s: %s", expression, result.ExceptionDetails)
	}
	if err := json.Unmarshal(result.Result.Value, value); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
}

// text returns the text of the page that a person reads.
func (c *chromium) text(t *testing.T, selector string) (text string) {
	t.Helper()
	c.evaluate(t, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector), &text)
	return text
}

// resize gives the tab a size in pixels.
func (c *chromium) resize(t *testing.T, width, height int) {
	t.Helper()
	c.call(t, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
}

// colours chooses the user's preference, dark or light.
func (c *chromium) colours(t *testing.T, preference string) {
	t.Helper()
	c.call(t, "Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": preference}}}, nil)
}

// screenshot returns a picture of the tab as PNG.
func (c *chromium) screenshot(t *testing.T) []byte {
	t.Helper()
	var picture struct{ Data string }
	c.call(t, "Page.captureScreenshot", map[string]any{"format": "png"}, &picture)
	png, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		t.Fatal(err)
	}
	return png
}

// press presses a key that moves the focus.
func (c *chromium) press(t *testing.T, key string, code int) {
	t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		c.call(t, "Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}, nil)
	}
}
