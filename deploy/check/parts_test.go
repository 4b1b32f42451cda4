package check

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// The parts of a release against each other: what no schema says.

type object struct {
	APIVersion string
	Kind       string
	Metadata   struct {
		Name   string
		Labels map[string]string
	}
	Spec map[string]any
	Data map[string]string
}

type service struct {
	Spec struct {
		ClusterIP string
		Selector  map[string]string
		Ports     []struct {
			Name       string
			TargetPort string
		}
	}
}

type container struct {
	Image   string
	Command []string
	Ports   []struct {
		Name          string
		ContainerPort int
	}
	SecurityContext struct {
		AllowPrivilegeEscalation *bool
		ReadOnlyRootFilesystem   bool
		Capabilities             struct{ Drop []string }
	}
	StartupProbe, ReadinessProbe, LivenessProbe *probe
	VolumeMounts                                []struct{ Name, MountPath string }
}

type probe struct {
	HTTPGet                         struct{ Path, Port string }
	PeriodSeconds, FailureThreshold int
}

type podSpec struct {
	ServiceAccountName           string
	EnableServiceLinks           *bool
	AutomountServiceAccountToken *bool
	SecurityContext              struct {
		RunAsNonRoot bool
		RunAsUser    int
	}
	Containers []container
	Volumes    []struct {
		Name      string
		ConfigMap struct{ Name string }
	}
}

type workload struct {
	Spec struct {
		ServiceName string
		Replicas    int
		Selector    struct{ MatchLabels map[string]string }
		Template    struct {
			Metadata struct{ Labels map[string]string }
			Spec     podSpec
		}
		VolumeClaimTemplates []struct {
			Metadata struct{ Name string }
			Spec     struct {
				Resources struct{ Requests map[string]string }
			}
		}
	}
}

// parse reads what is known to be YAML.
func parse[T any](text string) T {
	var found T
	if err := yaml.Unmarshal([]byte(text), &found); err != nil {
		panic(err)
	}
	return found
}

// of gives the objects of a kind by name.
func (r rendered) of(kind string) map[string]string {
	found := map[string]string{}
	for key, text := range r.objects {
		if name, is := strings.CutPrefix(key, kind+" "); is {
			found[name] = text
		}
	}
	return found
}

// only gives the one object of a kind.
func (r rendered) only(t *testing.T, kind string) string {
	t.Helper()
	found := r.of(kind)
	if len(found) != 1 {
		t.Fatalf("%d objects of kind %s", len(found), kind)
	}
	for _, text := range found {
		return text
	}
	return ""
}

// selects tells whether labels have all that a selector names.
func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

func checkParts(t *testing.T, release rendered, name string) {
	set := parse[workload](release.only(t, "StatefulSet"))
	labels, pod := set.Spec.Template.Metadata.Labels, set.Spec.Template.Spec
	if set.Spec.Replicas != 1 || !selects(set.Spec.Selector.MatchLabels, labels) {
		t.Errorf("%d replicas; the selector %v of %v", set.Spec.Replicas, set.Spec.Selector.MatchLabels, labels)
	}
	checkNames(t, release)
	checkSafety(t, pod)
	test := parse[struct{ Spec podSpec }](release.only(t, "Pod"))
	checkSafety(t, test.Spec)
	checkVolumes(t, release, set)
	checkServices(t, release, set)
	checkProbes(t, pod.Containers[0])
	if name := pod.ServiceAccountName; name != "default" && release.of("ServiceAccount")[name] == "" {
		t.Errorf("there is no ServiceAccount %s", name)
	}
	checkRules(t, release, name == "full" || name == "claim")
}

func checkNames(t *testing.T, release rendered) {
	for key, text := range release.objects {
		found := parse[object](text)
		for _, said := range validation.IsDNS1123Label(found.Metadata.Name) {
			t.Errorf("%s: %s", key, said)
		}
		for label, value := range found.Metadata.Labels {
			for _, said := range append(validation.IsQualifiedName(label), validation.IsValidLabelValue(value)...) {
				t.Errorf("%s: label %s=%s: %s", key, label, value, said)
			}
		}
	}
	for name := range release.of("StatefulSet") {
		// Its pods get a label of the name and a hash of ten characters.
		if len(name) > 52 {
			t.Errorf("the name %s is too long for a StatefulSet", name)
		}
	}
}

// The baseline called "restricted" by Kubernetes, and no write access but to the data.
func checkSafety(t *testing.T, pod podSpec) {
	isOff := func(flag *bool) bool { return flag != nil && !*flag }
	if !pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.RunAsUser == 0 {
		t.Error("it may run as root")
	}
	if !isOff(pod.EnableServiceLinks) || !isOff(pod.AutomountServiceAccountToken) {
		t.Error("it is given variables of Services, or a token")
	}
	for _, one := range pod.Containers {
		safety := one.SecurityContext
		if !isOff(safety.AllowPrivilegeEscalation) || !safety.ReadOnlyRootFilesystem || !slices.Equal(safety.Capabilities.Drop, []string{"ALL"}) {
			t.Errorf("%+v", safety)
		}
	}
}

func checkVolumes(t *testing.T, release rendered, set workload) {
	pod, there := set.Spec.Template.Spec, map[string]bool{}
	for _, volume := range pod.Volumes {
		there[volume.Name] = true
		if name := volume.ConfigMap.Name; name != "" && release.of("ConfigMap")[name] == "" {
			t.Errorf("there is no ConfigMap %s", name)
		}
	}
	for _, claim := range set.Spec.VolumeClaimTemplates {
		if there[claim.Metadata.Name] {
			t.Errorf("%s is a volume and a claim", claim.Metadata.Name)
		}
		there[claim.Metadata.Name] = true
		if claim.Spec.Resources.Requests["storage"] == "" {
			t.Errorf("the claim %s has no size", claim.Metadata.Name)
		}
	}
	for _, mount := range pod.Containers[0].VolumeMounts {
		if !there[mount.Name] {
			t.Errorf("there is no volume %s", mount.Name)
		}
		delete(there, mount.Name)
	}
	if len(there) > 0 {
		t.Errorf("not mounted: %v", there)
	}
}

func checkServices(t *testing.T, release rendered, set workload) {
	template := set.Spec.Template
	ports := map[string]bool{}
	for _, port := range template.Spec.Containers[0].Ports {
		ports[port.Name] = true
		for _, said := range validation.IsValidPortName(port.Name) {
			t.Errorf("port %s: %s", port.Name, said)
		}
	}
	test := parse[object](release.only(t, "Pod"))
	for name, text := range release.of("Service") {
		one := parse[service](text)
		if !selects(one.Spec.Selector, template.Metadata.Labels) || selects(one.Spec.Selector, test.Metadata.Labels) {
			t.Errorf("Service %s selects %v", name, one.Spec.Selector)
		}
		for _, port := range one.Spec.Ports {
			if !ports[port.TargetPort] {
				t.Errorf("Service %s leads to a port %s, which the pod has not", name, port.TargetPort)
			}
		}
	}
	if parse[service](release.of("Service")[set.Spec.ServiceName]).Spec.ClusterIP != "None" {
		t.Errorf("the StatefulSet's Service %s is not headless", set.Spec.ServiceName)
	}
	for _, text := range release.of("ServiceMonitor") {
		monitor := parse[object](text)
		wanted := parse[struct {
			Spec struct {
				Selector  struct{ MatchLabels map[string]string }
				Endpoints []struct {
					Port        string
					Relabelings []struct{ TargetLabel, Replacement string }
				}
			}
		}](text)
		if job := wanted.Spec.Endpoints[0].Relabelings[0]; job.TargetLabel != "job" || job.Replacement != "anabranch" {
			t.Errorf("the alerts are about the job anabranch, and ServiceMonitor %s makes it %+v", monitor.Metadata.Name, job)
		}
		var found []string
		for name, text := range release.of("Service") {
			if selects(wanted.Spec.Selector.MatchLabels, parse[object](text).Metadata.Labels) {
				found = append(found, name)
				if port := parse[service](text).Spec.Ports[0].Name; port != wanted.Spec.Endpoints[0].Port {
					t.Errorf("%s has a port %s", name, port)
				}
			}
		}
		if len(found) != 1 {
			t.Errorf("ServiceMonitor %s scrapes %v", monitor.Metadata.Name, found)
		}
	}
	for name, text := range release.of("NetworkPolicy") {
		policy := parse[struct {
			Spec struct {
				PodSelector struct{ MatchLabels map[string]string }
				Ingress     []struct {
					From []struct {
						PodSelector struct{ MatchLabels map[string]string }
					}
				}
			}
		}](text).Spec
		first := policy.Ingress[0].From[0].PodSelector.MatchLabels
		if !selects(policy.PodSelector.MatchLabels, template.Metadata.Labels) || !selects(first, test.Metadata.Labels) {
			t.Errorf("NetworkPolicy %s is about %v, and does not let the test in: %v", name, policy.PodSelector.MatchLabels, first)
		}
		for _, match := range regexp.MustCompile(`port: (\w+)`).FindAllStringSubmatch(text, -1) {
			if !ports[match[1]] {
				t.Errorf("NetworkPolicy names a port %s", match[1])
			}
		}
	}
}

func checkProbes(t *testing.T, broker container) {
	for name, one := range map[string]*probe{"/readyz": broker.StartupProbe, "/readyz ": broker.ReadinessProbe, "/healthz": broker.LivenessProbe} {
		if one == nil || one.HTTPGet.Path != strings.TrimSpace(name) || one.HTTPGet.Port != "http" {
			t.Errorf("%s is asked for by %+v", name, one)
		}
	}
	if startup := broker.StartupProbe; startup.PeriodSeconds*startup.FailureThreshold < 600 {
		t.Errorf("recovery has %d times %d s", startup.FailureThreshold, startup.PeriodSeconds)
	}
}

// The alerts of a release are those that promtool tries, placeholders untouched.
func checkRules(t *testing.T, release rendered, wanted bool) {
	rules := release.of("PrometheusRule")
	if (len(rules) == 1) != wanted {
		t.Errorf("%d PrometheusRules", len(rules))
	}
	for _, text := range rules {
		shipped := parse[map[string]any](read(t, "../prometheus/anabranch.rules.yml"))
		if !reflect.DeepEqual(parse[object](text).Spec["groups"], shipped["groups"]) {
			t.Error("the rules are not those of deploy/prometheus")
		}
	}
	for name, text := range release.of("ConfigMap") {
		if shown := parse[object](text).Data["anabranch.json"]; shown != "" && strings.TrimSpace(shown) != strings.TrimSpace(read(t, "../grafana/anabranch.json")) {
			t.Errorf("the dashboard in %s is not that of deploy/grafana", name)
		}
	}
}
