// Package check holds what deploy/ has for Kubernetes against those who define it: the chart is linted and rendered by Helm's
// own library for several sets of values, every object is held against its schema (schemas_test.go), the parts of a release
// against each other (parts_test.go), and the broker is started with the settings that were rendered (broker_test.go).
//
//	ANABRANCH=.../anabranch go test ./...       (cargo xtask test --only deploy)
package check

import (
	"fmt"
	"io"
	"log"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/releaseutil"
)

const folder = "../helm/anabranch"

func TestMain(m *testing.M) {
	// Helm's loader remarks on every link to the rules and the dashboard.
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// rendered is a release as Kubernetes would get it, by kind and name.
type rendered struct {
	objects map[string]string
	notes   string
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	found, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// render does what `helm template` does.
func render(found *chart.Chart, release string, values map[string]any) (rendered, error) {
	options := chartutil.ReleaseOptions{Name: release, Namespace: "streams", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(found, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return rendered{}, err
	}
	files, err := (engine.Engine{Strict: true}).Render(found, all)
	if err != nil {
		return rendered{}, err
	}
	said := rendered{objects: map[string]string{}}
	for name, text := range files {
		switch base := path.Base(name); {
		case base == "NOTES.txt":
			said.notes = text
		case strings.HasPrefix(base, "_"):
			if strings.TrimSpace(text) != "" {
				return rendered{}, fmt.Errorf("%s renders %q", name, text)
			}
		default:
			for _, document := range releaseutil.SplitManifests(text) {
				head := parse[object](document)
				if head.Kind == "" {
					continue
				}
				key := head.Kind + " " + head.Metadata.Name
				if _, twice := said.objects[key]; twice {
					return rendered{}, fmt.Errorf("two objects are a %s", key)
				}
				said.objects[key] = document
			}
		}
	}
	return said, nil
}

// cases are the sets of values that the chart is tried with, by name.
func cases(t *testing.T) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{"default": {}}
	files, err := filepath.Glob(folder + "/ci/*-values.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files of values, %v", len(files), err)
	}
	for _, file := range files {
		values, err := chartutil.ReadValuesFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimSuffix(filepath.Base(file), "-values.yaml")] = values
	}
	return found
}

func TestHelmHasNothingToSay(t *testing.T) {
	for name, values := range cases(t) {
		for _, message := range lint.AllWithKubeVersion(folder, values, "streams", nil).Messages {
			// Of no more weight than a missing icon.
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, message)
			}
		}
	}
}

func TestEveryObjectIsWhatItsKindAllows(t *testing.T) {
	schemas, found := loadSchemas(t), loadChart(t)
	for name, values := range cases(t) {
		// The longest name that Helm takes.
		for _, release := range []string{"events", strings.Repeat("long-name-", 5) + "abc"} {
			t.Run(name+"/"+release[:6], func(t *testing.T) {
				release, err := render(found, release, values)
				if err != nil {
					t.Fatal(err)
				}
				for key, text := range release.objects {
					if err := schemas.check([]byte(text)); err != nil {
						t.Errorf("%s: %v", key, err)
					}
				}
				checkParts(t, release, name)
			})
		}
	}
}

// A set of values shows what it is about: no switch is without effect.
func TestSwitchesSwitch(t *testing.T) {
	found := loadChart(t)
	for name, kinds := range map[string]string{
		"default": "ConfigMap Pod Service Service Service ServiceAccount StatefulSet",
		"small":   "ConfigMap NetworkPolicy Pod Service Service Service ServiceMonitor StatefulSet",
		"claim":   "ConfigMap Pod PrometheusRule Service Service Service Service ServiceAccount StatefulSet",
		"full": "ConfigMap ConfigMap Ingress NetworkPolicy Pod PrometheusRule ScaledObject ScaledObject Service Service Service Service " +
			"ServiceAccount ServiceMonitor StatefulSet",
	} {
		release, err := render(found, "events", cases(t)[name])
		if err != nil {
			t.Fatal(err)
		}
		var seen []string
		for key := range release.objects {
			seen = append(seen, strings.Fields(key)[0])
		}
		sort.Strings(seen)
		if strings.Join(seen, " ") != kinds {
			t.Errorf("%s: %v", name, seen)
		}
	}
}

// What cannot work is refused with a word about why, before anything is installed.
func TestMistakesAreRefused(t *testing.T) {
	found := loadChart(t)
	for text, part := range map[string]string{
		"{replicas: 3}":                       "replicas",
		"{kafka: {port: 99999}}":              "port",
		"{kafka: {advertise: broker}}":        "advertise",
		"{external: {enabled: true}}":         "connect to what it tells them",
		"{http: {ingress: {enabled: true}}}":  "which name does the console have",
		"{settings: {listen: 'a:1'}}":         "the chart sets it from its own values",
		"{settings: {log: {level: debug}}}":   "log",
		"{persistence: {size: a lot}}":        "size",
		"{keda: {consumers: [{group: a}]}}":   "deployment",
		"{persistence: {whenDeleted: Maybe}}": "whenDeleted",
	} {
		values, err := chartutil.ReadValues([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := render(found, "events", values); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestNotesSayWhatClientsMustKnow(t *testing.T) {
	found := loadChart(t)
	for name, parts := range map[string][]string{
		"default": {
			"events-anabranch.streams:9092",
			"told to connect to events-anabranch.streams.svc.cluster.local:9092",
			"no authentication",
			"port-forward service/events-anabranch-http 9099",
		},
		"small": {"All messages are gone"},
		"full":  {"outside connect to kafka.example.com:31092", "https://console.example.com"},
		"claim": {"events-broker.streams.svc.k8s.example:19092", "[2001:db8::1]:9094"},
	} {
		release, err := render(found, "events", cases(t)[name])
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if !strings.Contains(release.notes, part) {
				t.Errorf("%s: no %q in\n%s", name, part, release.notes)
			}
		}
	}
}

// The chart is released with the binary, and asks for the image that the release makes.
func TestTheChartHasTheVersionOfTheBroker(t *testing.T) {
	manifest, err := os.ReadFile("../../Cargo.toml")
	if err != nil {
		t.Fatal(err)
	}
	version := string(regexp.MustCompile(`(?m)^version = "(.*)"$`).FindSubmatch(manifest)[1])
	about := loadChart(t).Metadata
	if about.Version != version || about.AppVersion != version {
		t.Errorf("chart %s, app %s, workspace %s", about.Version, about.AppVersion, version)
	}
	release, err := render(loadChart(t), "events", nil)
	if err != nil {
		t.Fatal(err)
	}
	image := parse[workload](release.objects["StatefulSet events-anabranch"]).Spec.Template.Spec.Containers[0].Image
	if image != "ghcr.io/anabranch/anabranch:v"+version {
		t.Errorf("image %s", image)
	}
}
