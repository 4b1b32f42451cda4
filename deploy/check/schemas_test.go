package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// What an object may be, from those who define it: Kubernetes' own OpenAPI files and KEDA's resource definitions, which lie in
// their Go modules, and the Go types of Prometheus Operator. A field that nobody knows is an error, as with `kubectl apply`
// with strict validation.

// release is a module that is read, not built.
type release struct {
	module, version string
	// The checksum of its archive, as go.sum has it.
	sum string
}

var (
	kubernetes = release{"k8s.io/kubernetes", "v1.37.2", "h1:A2VDEiObzkYqFTKhSsn0ZEb0RlLEXpHWj93gi2HqEwE="}
	keda       = release{"github.com/kedacore/keda/v2", "v2.21.0", "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps="}
)

// folder is where the module lies, fetched if need be.
func (r release) folder() (string, error) {
	command := exec.Command("go", "mod", "download", "-json", r.module+"@"+r.version)
	// Outside of this module, whose requirements it must not change. The sum is compared here.
	command.Dir = os.TempDir()
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GONOSUMDB=*", "GOWORK=off")
	out, err := command.Output()
	var found struct{ Dir, Sum, Error string }
	if err := errors.Join(json.Unmarshal(out, &found), err); err != nil {
		return "", fmt.Errorf("go mod download %s: %w %s", r.module, err, found.Error)
	}
	if found.Sum != r.sum {
		return "", fmt.Errorf("%s@%s has the checksum %s where %s is expected", r.module, r.version, found.Sum, r.sum)
	}
	return found.Dir, nil
}

// schemas finds the schema of an object by its apiVersion and kind.
type schemas map[string]*jsonschema.Schema

func loadSchemas(t *testing.T) schemas {
	t.Helper()
	found := schemas{}
	if err := errors.Join(found.loadKubernetes(), found.loadKeda()); err != nil {
		t.Fatal(err)
	}
	return found
}

func (s schemas) loadKubernetes() error {
	folder, err := kubernetes.folder()
	if err != nil {
		return err
	}
	for _, name := range []string{"api__v1", "apis__apps__v1", "apis__networking.k8s.io__v1"} {
		text, err := os.ReadFile(filepath.Join(folder, "api/openapi-spec/v3", name+"_openapi.json"))
		if err != nil {
			return err
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return err
		}
		schemaAt, err := opened(name, document)
		if err != nil {
			return err
		}
		kinds := document.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any)
		for kind, schema := range kinds {
			rows, _ := schema.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
			if len(rows) != 1 {
				// No object of its own, or one that is in every group, as Status.
				continue
			}
			row := rows[0].(map[string]any)
			key := strings.TrimPrefix(fmt.Sprintf("%s/%s %s", row["group"], row["version"], row["kind"]), "/")
			if s[key], err = schemaAt("/components/schemas/" + kind); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s schemas) loadKeda() error {
	folder, err := keda.folder()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(folder, "config/crd/bases/keda.sh_scaledobjects.yaml"))
	if err != nil {
		return err
	}
	text, err = yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	schemaAt, err := opened("keda", document)
	if err != nil {
		return err
	}
	s["keda.sh/v1alpha1 ScaledObject"], err = schemaAt("/spec/versions/0/schema/openAPIV3Schema")
	return err
}

// opened gives the schemas of a document by their place in it.
func opened(name string, document any) (func(pointer string) (*jsonschema.Schema, error), error) {
	closeObjects(document)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	url := "mem:///" + name
	if err := compiler.AddResource(url, document); err != nil {
		return nil, err
	}
	return func(pointer string) (*jsonschema.Schema, error) { return compiler.Compile(url + "#" + pointer) }, nil
}

// closeObjects makes unknown fields an error where a schema lists the fields.
func closeObjects(node any) {
	switch node := node.(type) {
	case map[string]any:
		_, lists := node["properties"].(map[string]any)
		_, says := node["additionalProperties"]
		if lists && !says && node["x-kubernetes-preserve-unknown-fields"] != true {
			node["additionalProperties"] = false
		}
		for _, child := range node {
			closeObjects(child)
		}
	case []any:
		for _, child := range node {
			closeObjects(child)
		}
	}
}

// check holds an object, as YAML, against what defines its kind.
func (s schemas) check(text []byte) error {
	inJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	var kind struct{ APIVersion, Kind string }
	if err := json.Unmarshal(inJSON, &kind); err != nil {
		return err
	}
	switch key := kind.APIVersion + " " + kind.Kind; key {
	case "monitoring.coreos.com/v1 ServiceMonitor":
		return yaml.UnmarshalStrict(text, &monitoring.ServiceMonitor{}, yaml.DisallowUnknownFields)
	case "monitoring.coreos.com/v1 PrometheusRule":
		return yaml.UnmarshalStrict(text, &monitoring.PrometheusRule{}, yaml.DisallowUnknownFields)
	default:
		schema := s[key]
		if schema == nil {
			return fmt.Errorf("nothing defines %q", key)
		}
		object, err := jsonschema.UnmarshalJSON(bytes.NewReader(inJSON))
		if err != nil {
			return err
		}
		return schema.Validate(object)
	}
}

func TestWhatNobodyDefinesIsAnError(t *testing.T) {
	schemas := loadSchemas(t)
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  ports:\n    - {port: 1%s}\n"
	if err := schemas.check(fmt.Appendf(nil, service, "")); err != nil {
		t.Error(err)
	}
	const scaled = "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: a}\nspec:\n  triggers: []\n"
	for text, part := range map[string]string{
		fmt.Sprintf(service, ", tragetPort: a"):   "tragetPort",
		fmt.Sprintf(service, "}\n    - {name: b"): "port",
		fmt.Sprintf(service, ", nodePort: high"):  "nodePort",
		fmt.Sprintf(service, ", port: 2"):         "already set",
		"apiVersion: v1\nkind: Server\n":          "nothing defines",
		scaled:                                    "scaleTargetRef",
		scaled + "  scaleTargetRef: {nam: a}\n":   "nam",
		"apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nspec: {endpoint: []}\n": "endpoint",
	} {
		if err := schemas.check([]byte(text)); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not complained of in\n%s\nbut: %v", part, text, err)
		}
	}
}

// Every example of KEDA's that is shipped.
func TestScalersAreWhatKedaTakes(t *testing.T) {
	schemas := loadSchemas(t)
	text, err := os.ReadFile("../keda/scaledobjects.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	if len(documents) != 3 {
		t.Fatalf("%d examples", len(documents))
	}
	for _, document := range documents {
		if err := schemas.check([]byte(document)); err != nil {
			t.Errorf("%v in\n%s", err, document)
		}
	}
}
