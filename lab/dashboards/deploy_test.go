package dashboards

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// deploy is the folder of the kit.
const deploy = "../../deploy"

// read parses a file of the kit into what v points to. Keys that v does not have are errors, so that a misspelled one
// is found.
func read(t *testing.T, name string, v any) {
	t.Helper()
	f, err := os.Open(filepath.Join(deploy, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// compose has the keys of compose.yaml.
type compose struct {
	Name     string
	Services map[string]struct {
		Image, Restart  string
		Command         []string
		Build           struct{ Context, Dockerfile string }
		Environment     map[string]string
		Volumes, Ports  []string
		DependsOn       any            `yaml:"depends_on"`
		Healthcheck     map[string]any `yaml:"healthcheck"`
		StopGracePeriod string         `yaml:"stop_grace_period"`
	}
}

// TestDeploy_ComposeNamesFilesThatExist also checks that every image has an exact version and no port is open to others.
func TestDeploy_ComposeNamesFilesThatExist(t *testing.T) {
	var c compose
	read(t, "compose.yaml", &c)
	if len(c.Services) != 4 {
		t.Errorf("%d services", len(c.Services))
	}
	for name, s := range c.Services {
		if _, version, _ := strings.Cut(s.Image, ":"); (s.Image != "" || s.Build.Context == "") && strings.Count(version, ".") != 2 {
			t.Errorf("%s: image %q has no exact version", name, s.Image)
		}
		paths := []string{filepath.Join(s.Build.Context, s.Build.Dockerfile)}
		for _, v := range s.Volumes {
			paths = append(paths, strings.Split(v, ":")[0])
		}
		for _, path := range paths {
			if _, err := os.Stat(filepath.Join(deploy, path)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to other machines", name, port)
			}
		}
	}
}

// TestDeploy_EveryDashboardIsMounted checks that Grafana gets each, and where its provider looks.
func TestDeploy_EveryDashboardIsMounted(t *testing.T) {
	var c compose
	read(t, "compose.yaml", &c)
	var p struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Type, Folder string
			Options            struct{ Path string }
		}
	}
	read(t, "grafana/dashboards.yml", &p)
	folder := p.Providers[0].Options.Path
	grafana := c.Services["grafana"]
	for _, file := range paths(t) {
		name := filepath.Base(file)
		if mount := "../metrics/grafana/" + name + ":" + folder + "/" + name + ":ro"; !slices.Contains(grafana.Volumes, mount) {
			t.Errorf("no volume %s", mount)
		}
	}
	if home := grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]; home != folder+"/overview.json" {
		t.Errorf("the home page is %s", home)
	}
}

// TestDeploy_AddressesMatch checks that Grafana asks Prometheus where it listens, at the interval at which it scrapes,
// and that Prometheus scrapes as many processes as the demonstration has, where it listens.
func TestDeploy_AddressesMatch(t *testing.T) {
	var c compose
	read(t, "compose.yaml", &c)
	var p struct {
		Global struct {
			Scrape   string `yaml:"scrape_interval"`
			Evaluate string `yaml:"evaluation_interval"`
		}
		Rules   []string `yaml:"rule_files"`
		Scrapes []struct {
			Job     string                       `yaml:"job_name"`
			Statics []struct{ Targets []string } `yaml:"static_configs"`
			Relabel []struct {
				From        []string `yaml:"source_labels"`
				To          string   `yaml:"target_label"`
				Replacement string
			} `yaml:"relabel_configs"`
		} `yaml:"scrape_configs"`
	}
	read(t, "prometheus.yml", &p)
	var g struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			Default                      bool `yaml:"isDefault"`
			JSON                         struct {
				Interval string `yaml:"timeInterval"`
			} `yaml:"jsonData"`
		}
	}
	read(t, "grafana/datasources.yml", &g)

	// Without promtool the checks below still apply.
	if promtool, err := exec.LookPath("promtool"); err == nil {
		if said, err := exec.Command(promtool, "check", "config", filepath.Join(deploy, "prometheus.yml")).CombinedOutput(); err != nil {
			t.Errorf("promtool: %v\n%s", err, said)
		}
	}
	command := strings.Join(c.Services["demo"].Command, " ")
	job := p.Scrapes[0]
	rules := job.Relabel
	if want := "demo:9464"; rules[len(rules)-1].Replacement != want || !strings.Contains(command, "--listen :9464") {
		t.Errorf("Prometheus scrapes %s, and the demonstration runs with %s", rules[len(rules)-1].Replacement, command)
	}
	if !slices.Equal(job.Statics[0].Targets, []string{"1", "2", "3"}) || !strings.Contains(command, "--processes 3") {
		t.Errorf("Prometheus scrapes processes %v, and the demonstration runs with %s", job.Statics[0].Targets, command)
	}
	if d := g.Datasources[0]; d.URL != "http://prometheus:9090" || d.JSON.Interval != p.Global.Scrape {
		t.Errorf("Grafana asks %s each %s; Prometheus scrapes each %s", d.URL, d.JSON.Interval, p.Global.Scrape)
	}
	// A mounted file keeps its place relative to the others.
	volumes := strings.Join(c.Services["prometheus"].Volumes, " ")
	for _, rule := range p.Rules {
		path := filepath.Join("/anteroom/deploy", rule)
		if !strings.Contains(volumes, rule+":"+path+":ro") {
			t.Errorf("no volume has %s", path)
		}
	}
}
