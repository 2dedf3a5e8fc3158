package dashboards

import (
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schema is Grafana's own: jsonschema/dashboard.jsonschema.json of the repository grafana/grafana-foundation-sdk, unchanged.
// It is under the Apache License 2.0, whose text is beside it and covers that file only.
const schema = "grafana-dashboard.schema.json"

// anything lists the properties where Grafana's own model (TypeScript: any) takes any value but the schema translated
// from it says object. Grafana itself writes strings and numbers there: the name of a column, its unit, its decimals.
var anything = map[string]string{"MatcherConfig": "options", "DynamicConfigValue": "value"}

// rulesOf returns the schema, changed to accept any value in those places.
func rulesOf(t *testing.T) *jsonschema.Schema {
	t.Helper()
	f, err := os.Open(schema)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	definitions := text.(map[string]any)["definitions"].(map[string]any)
	for name, property := range anything {
		properties := definitions[name].(map[string]any)["properties"].(map[string]any)
		if properties[property].(map[string]any)["type"] != "object" {
			t.Errorf("the schema now accepts %s.%s: remove it from the list", name, property)
		}
		properties[property] = map[string]any{}
	}
	// A name that is no path: one with a space is not found again, and the schema is then read from the file, unchanged.
	const name = "mem:///dashboard"
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, text); err != nil {
		t.Fatal(err)
	}
	rules, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func TestDashboards_I8_HaveGrafanasStructure(t *testing.T) {
	rules := rulesOf(t)
	for _, path := range paths(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		check := func(text string) error {
			d, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			return rules.Validate(d)
		}
		if err := check(string(text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		// This proves that the schema rejects something.
		for right, wrong := range map[string]string{
			`"title":`: `"titel":`, `"w": 4`: `"w": "4"`, `"w": 12`: `"w": 30`, `"schemaVersion":`: `"schemaversion":`, `"mode": "thresholds"`: `"mode": "pretty"`,
		} {
			if bad := strings.Replace(string(text), right, wrong, 1); bad == string(text) || check(bad) == nil {
				t.Errorf("%s: %s in place of %s was accepted", path, wrong, right)
			}
		}
	}
}
