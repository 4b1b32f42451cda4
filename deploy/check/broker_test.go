package check

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The broker takes the settings that the chart renders, and answers what Kubernetes, Prometheus and browsers ask it.

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// binary is the broker under test.
func binary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("ANABRANCH")
	if path == "" {
		t.Fatal("ANABRANCH must name the binary")
	}
	return path
}

// settings writes the rendered file of settings to a folder.
func settings(t *testing.T, release rendered) string {
	t.Helper()
	set := parse[workload](release.only(t, "StatefulSet"))
	volume := set.Spec.Template.Spec.Volumes[0]
	text := parse[object](release.objects["ConfigMap "+volume.ConfigMap.Name]).Data["anabranch.toml"]
	path := filepath.Join(t.TempDir(), "anabranch.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheBrokerTakesTheSettings(t *testing.T) {
	found := loadChart(t)
	for name, values := range cases(t) {
		release, err := render(found, "events", values)
		if err != nil {
			t.Fatal(err)
		}
		path := settings(t, release)
		if out, err := exec.Command(binary(t), "config", "check", path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s in\n%s", name, err, out, read(t, path))
		}
		if name != "full" {
			continue
		}
		for key, part := range map[string]string{
			"listen":              "EXTERNAL://0.0.0.0:9094",
			"advertise":           "CLUSTER://kafka.streams.svc.cluster.local:9092",
			"http":                "0.0.0.0:9099",
			"num.partitions":      "6",
			"log.retention.bytes": "107374182400",
			"admin.token.file":    "/etc/anabranch-token/token",
			"admin.hosts":         "console.example.com",
		} {
			out, err := exec.Command(binary(t), "config", "explain", key, "--config", path).CombinedOutput()
			if err != nil || !strings.Contains(string(out), part) {
				t.Errorf("%s is not %s: %v: %s", key, part, err, out)
			}
		}
	}
}

// running is a broker and where it answers.
type running struct {
	process     *exec.Cmd
	kafka, http string
}

// started runs the container's command with ports that are free and a volume as storage drivers make it.
func started(t *testing.T, release rendered, further ...string) running {
	t.Helper()
	volume := t.TempDir()
	// At the root of a formatted volume, and nobody's but root's.
	if err := os.Mkdir(filepath.Join(volume, "lost+found"), 0); err != nil {
		t.Fatal(err)
	}
	command := parse[workload](release.only(t, "StatefulSet")).Spec.Template.Spec.Containers[0].Command
	if strings.Join(command, " ") != "anabranch serve --config /etc/anabranch/anabranch.toml" {
		t.Fatalf("the container runs %v", command)
	}
	config := settings(t, release)
	broker := exec.Command(binary(t), "serve", "--config", config, "--data", volume, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
	broker.Args = append(broker.Args, further...)
	if os.Geteuid() == 0 {
		asInThePod(t, broker, volume, config)
	}
	// What is written elsewhere would fail in the pod, whose file system is read-only.
	broker.Dir, broker.Env = "/", []string{"PATH=/nowhere", "HOME=/nowhere", "TMPDIR=/nowhere"}
	var log bytes.Buffer
	broker.Stderr = &log
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the broker's log:\n%s", &log)
		}
	})
	out, err := broker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Process.Kill(); _ = broker.Wait() })
	lines, found := bufio.NewScanner(out), running{process: broker}
	for lines.Scan() {
		words := append(strings.Fields(lines.Text()), "", "")
		switch words[0] {
		case "kafka":
			found.kafka = words[1]
		case "http":
			found.http = words[1]
		case "stop":
			go io.Copy(io.Discard, out)
			return found
		}
	}
	t.Fatal("the broker ended before it was ready")
	return found
}

// asInThePod has the broker run as the user of the pod, with what that user may read.
func asInThePod(t *testing.T, broker *exec.Cmd, volume, config string) {
	t.Helper()
	const user = 1000
	// The folder of the build may be root's alone.
	program := filepath.Join(t.TempDir(), "anabranch")
	text, err := os.ReadFile(broker.Path)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.WriteFile(program, text, 0o755), os.Chown(volume, user, user), os.Chmod(config, 0o644))
	for _, folder := range []string{program, volume, config} {
		// Folders of tests are their owner's alone.
		err = errors.Join(err, os.Chmod(filepath.Dir(folder), 0o755), os.Chmod(filepath.Dir(filepath.Dir(folder)), 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	broker.Path = program
	broker.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
}

func TestTheBrokerAnswersProbesScrapesAndBrowsers(t *testing.T) {
	release, err := render(loadChart(t), "events", nil)
	if err != nil {
		t.Fatal(err)
	}
	broker := started(t, release)
	get := func(path, host string) int {
		request, err := http.NewRequest(http.MethodGet, "http://"+broker.http+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	one := parse[workload](release.only(t, "StatefulSet")).Spec.Template.Spec.Containers[0]
	for _, look := range []struct {
		path, host string
		status     int
	}{
		// The kubelet and Prometheus name the pod's address.
		{one.StartupProbe.HTTPGet.Path, "10.42.0.7:9099", 200},
		{one.LivenessProbe.HTTPGet.Path, "10.42.0.7:9099", 200},
		{"/metrics", "10.42.0.7:9099", 200},
		// Names of the Service, and what `kubectl port-forward` makes of it.
		{"/", "events-anabranch-http:9099", 200},
		{"/", "events-anabranch-http.streams:9099", 200},
		{"/", "events-anabranch-http.streams.svc:9099", 200},
		{"/", "events-anabranch-http.streams.svc.cluster.local:9099", 200},
		{"/", "localhost:9099", 200},
		{"/", "console.example.com", 421},
	} {
		if status := get(look.path, look.host); status != look.status {
			t.Errorf("%s of %s: %d", look.path, look.host, status)
		}
	}
	if err := broker.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := broker.process.Wait(); err != nil {
		t.Error(fmt.Errorf("it ended with %w", err))
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s to end", took)
	}
}
