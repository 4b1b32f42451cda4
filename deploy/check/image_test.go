package check

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The image's recipe against the repository, the binary and the chart. Nothing here can build it; each of its steps is held
// against what it stands on.

// step is one instruction of a Dockerfile, its lines joined.
type step struct{ name, rest string }

func recipe(t *testing.T) []step {
	t.Helper()
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(read(t, "../docker/Dockerfile"), "")
	text = regexp.MustCompile(`\\\n\s*`).ReplaceAllString(text, "")
	var steps []step
	for line := range strings.Lines(text) {
		if name, rest, found := strings.Cut(strings.TrimSpace(line), " "); found {
			steps = append(steps, step{name, strings.TrimSpace(rest)})
		}
	}
	return steps
}

// of gives what all instructions of a kind say.
func of(steps []step, name string) []string {
	var found []string
	for _, one := range steps {
		if one.name == name {
			found = append(found, one.rest)
		}
	}
	return found
}

func TestTheImageIsMadeOfWhatThereIs(t *testing.T) {
	steps := recipe(t)
	channel := regexp.MustCompile(`channel = "(\d+\.\d+)`).FindStringSubmatch(read(t, "../../rust-toolchain.toml"))[1]
	bases := of(steps, "FROM")
	if len(bases) != 2 || !strings.HasPrefix(bases[0], "rust:"+channel+"-") {
		t.Errorf("built in %v, with Rust %s", bases, channel)
	}
	// The program is linked to nothing, but the shell of both is of one Debian.
	if debian := "trixie"; !strings.Contains(bases[0], debian) || !strings.Contains(bases[1], debian) {
		t.Errorf("two Debians: %v", bases)
	}
	for _, copied := range of(steps, "COPY") {
		words := slices.DeleteFunc(strings.Fields(copied), func(word string) bool { return strings.HasPrefix(word, "--chmod=") })
		if strings.HasPrefix(words[0], "--from=") {
			continue
		}
		source := filepath.Join("../..", words[0])
		if _, err := os.Stat(source); err != nil {
			t.Errorf("COPY %s: %v", copied, err)
		}
	}
	build := of(steps, "RUN")[1]
	for _, part := range []string{"--locked", "--release", "-p anabranch", "strip -o /anabranch "} {
		if !strings.Contains(build, part) {
			t.Errorf("no %q in %s", part, build)
		}
	}
	// The build needs these and nothing of the target folder.
	ignored := read(t, "../../.dockerignore")
	for _, needed := range []string{"Cargo.lock", "crates", "deploy", "LICENSE", "rust-toolchain.toml"} {
		if regexp.MustCompile(`(?m)^(\*\*/)?` + regexp.QuoteMeta(needed) + `/?$`).MatchString(ignored) {
			t.Errorf("%s is kept out of the build", needed)
		}
	}
	if !strings.Contains(ignored, "**/target") {
		t.Error("the target folder is sent to the build")
	}
}

func TestTheImageIsWhatTheChartRuns(t *testing.T) {
	steps := recipe(t)
	set, err := render(loadChart(t), "events", nil)
	if err != nil {
		t.Fatal(err)
	}
	pod := parse[workload](set.only(t, "StatefulSet")).Spec.Template.Spec
	broker := pod.Containers[0]
	if user := of(steps, "USER"); len(user) != 1 || user[0] != "1000:1000" || pod.SecurityContext.RunAsUser != 1000 {
		t.Errorf("the image runs as %v, the chart as %d", user, pod.SecurityContext.RunAsUser)
	}
	data := of(steps, "VOLUME")[0]
	if broker.VolumeMounts[0].MountPath != data || !slices.Contains(of(steps, "ENV"), "ANABRANCH_DATA="+data) {
		t.Errorf("the data: %s, %v, %v", data, of(steps, "ENV"), broker.VolumeMounts)
	}
	if !strings.Contains(strings.Join(of(steps, "RUN"), "\n"), "install -d -o anabranch -g anabranch -m 0750 "+data) {
		t.Errorf("%s is not the user's", data)
	}
	if ports := of(steps, "EXPOSE")[0]; ports != "9092 9099" || broker.Ports[0].ContainerPort != 9092 || broker.Ports[1].ContainerPort != 9099 {
		t.Errorf("the ports: %s, %v", ports, broker.Ports)
	}
	// What the image calls is there, and the program knows the command.
	var command []string
	health := of(steps, "HEALTHCHECK")[0]
	if err := json.Unmarshal([]byte(health[strings.Index(health, "["):]), &command); err != nil || command[0] != "anabranch" {
		t.Fatalf("%s: %v", health, err)
	}
	for _, arguments := range [][]string{command[1:], broker.Command[1:2]} {
		if out, err := exec.Command(binary(t), append(arguments, "--help")...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v: %s", arguments, err, out)
		}
	}
	if start := of(steps, "CMD")[0]; start != `["/etc/kafka/docker/run"]` || !strings.Contains(strings.Join(of(steps, "COPY"), "\n"), "deploy/docker/run /etc/kafka/docker/run") {
		t.Errorf("it starts with %s", start)
	}
	if about, err := os.Stat("../docker/run"); err != nil || about.Mode()&0o111 == 0 {
		t.Errorf("the start script cannot be run: %v %v", about, err)
	}
	if out, err := exec.Command("sh", "-n", "../docker/run").CombinedOutput(); err != nil {
		t.Errorf("the start script: %s", out)
	}
}
