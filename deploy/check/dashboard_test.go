package check

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The dashboard and the alerts before a real Prometheus, which scrapes a real broker while the demo runs on it: everything
// that is asked for is answered with data.

type dashboard struct {
	Templating struct {
		List []struct {
			Type  string
			Query json.RawMessage
		}
	}
	Panels []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
}

// prometheus is one that scrapes the broker every second.
type prometheus string

func startPrometheus(t *testing.T, broker running) prometheus {
	t.Helper()
	folder := t.TempDir()
	config := read(t, "../prometheus/prometheus.yml")
	for old, short := range map[string]string{`"127.0.0.1:9099"`: strconv.Quote(broker.http), "interval: 15s": "interval: 1s"} {
		if !strings.Contains(config, old) {
			t.Fatalf("prometheus.yml has no %s", old)
		}
		config = strings.ReplaceAll(config, old, short)
	}
	for name, text := range map[string]string{"prometheus.yml": config, "anabranch.rules.yml": read(t, "../prometheus/anabranch.rules.yml")} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := port.Addr().String()
	port.Close()
	process := exec.Command("prometheus", "--config.file="+folder+"/prometheus.yml", "--storage.tsdb.path="+folder+"/data",
		"--web.listen-address="+address, "--log.level=warn")
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	return prometheus("http://" + address + "/api/v1/")
}

// ask reads the data of an answer; an error while Prometheus is not ready, or does not understand.
func (p prometheus) ask(path string, parameters url.Values, data any) error {
	answer, err := http.Get(string(p) + path + "?" + parameters.Encode())
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil {
		return err
	}
	if said.Status != "success" {
		return fmt.Errorf("%s: %s", parameters, said.Error)
	}
	return nil
}

type series struct {
	Metric map[string]string
	Values [][2]any
}

// hasNumbers tells whether a series has a value that is one.
func (s series) hasNumbers() bool {
	return slices.ContainsFunc(s.Values, func(pair [2]any) bool {
		number, err := strconv.ParseFloat(fmt.Sprint(pair[1]), 64)
		return err == nil && !math.IsNaN(number)
	})
}

func TestEveryPanelShowsSomethingWhileTheDemoRuns(t *testing.T) {
	release, err := render(loadChart(t), "events", nil)
	if err != nil {
		t.Fatal(err)
	}
	// Its clients are here, and not in a cluster.
	broker := started(t, release, "--advertise", "none")
	prom, begun := startPrometheus(t, broker), time.Now()
	scraped := func() bool {
		var found struct {
			ActiveTargets []struct{ Health, LastError string }
		}
		err := prom.ask("targets", nil, &found)
		return err == nil && len(found.ActiveTargets) == 1 && found.ActiveTargets[0].Health == "up"
	}
	for !scraped() {
		if time.Since(begun) > 30*time.Second {
			t.Fatal("Prometheus does not scrape the broker")
		}
		time.Sleep(100 * time.Millisecond)
	}
	// Side by side: a backlog that is divided, one that cannot be, and queues that follow their consumers.
	demos := map[string]chan error{}
	for _, kind := range []string{"--members 3", "--keys 1 --members 2 --records 5000", "--mode queues"} {
		arguments := append(strings.Fields("demo "+kind), "--bootstrap", broker.kafka, "--admin", "http://"+broker.http)
		ended := make(chan error)
		demos[kind] = ended
		go func() {
			said, err := exec.Command(binary(t), arguments...).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, said)
			}
			ended <- err
		}()
	}
	for kind, ended := range demos {
		if err := <-ended; err != nil {
			t.Fatalf("the demo with %s: %v", kind, err)
		}
	}
	checkPanels(t, prom, begun)
	checkAlerts(t, prom)
}

func checkPanels(t *testing.T, prom prometheus, begun time.Time) {
	var shown dashboard
	if err := json.Unmarshal([]byte(read(t, "../grafana/anabranch.json")), &shown); err != nil {
		t.Fatal(err)
	}
	variable := regexp.MustCompile(`"\$\w+"`)
	filled := func(expression string) string {
		return strings.ReplaceAll(variable.ReplaceAllString(expression, `".*"`), "$__rate_interval", "10s")
	}
	for _, one := range shown.Templating.List {
		var query struct{ Query string }
		if one.Type != "query" || json.Unmarshal(one.Query, &query) != nil {
			continue
		}
		parts := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(query.Query)
		var values []string
		match := url.Values{"match[]": {filled(parts[1])}}
		if err := prom.ask("label/"+parts[2]+"/values", match, &values); err != nil || len(values) == 0 {
			t.Errorf("nothing to choose from: %s: %v", query.Query, err)
		}
	}
	seen, legend := 0, regexp.MustCompile(`{{(\w+)}}`)
	for _, panel := range shown.Panels {
		for _, target := range panel.Targets {
			var found struct{ Result []series }
			when := url.Values{
				"query": {filled(target.Expr)}, "step": {"1"},
				"start": {strconv.FormatInt(begun.Unix(), 10)}, "end": {strconv.FormatInt(time.Now().Unix(), 10)},
			}
			if err := prom.ask("query_range", when, &found); err != nil {
				t.Errorf("%s: %v", panel.Title, err)
				continue
			}
			if !slices.ContainsFunc(found.Result, series.hasNumbers) {
				t.Errorf("%s is empty: %s", panel.Title, target.Expr)
			}
			for _, label := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				for _, one := range found.Result {
					if one.Metric[label[1]] == "" {
						t.Errorf("%s: no %s in %v", panel.Title, label[1], one.Metric)
					}
				}
			}
			seen++
		}
	}
	if seen < 40 {
		t.Errorf("only %d queries", seen)
	}
}

// The rules are loaded and evaluated, and a broker that is well raises no alarm.
func checkAlerts(t *testing.T, prom prometheus) {
	var found struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError, State string }
		}
	}
	if err := prom.ask("rules", nil, &found); err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, group := range found.Groups {
		for _, rule := range group.Rules {
			count++
			if rule.Health != "ok" || rule.State == "firing" {
				t.Errorf("%s: %s %s %s", rule.Name, rule.Health, rule.State, rule.LastError)
			}
		}
	}
	if count < 10 {
		t.Errorf("only %d alerts", count)
	}
}
