package dashboards

import (
	"bytes"
	"encoding/json"
)

// schemaVersion is the version of the files' dashboard model: that of Grafana 11. Later versions convert older files
// when they load them.
const schemaVersion = 39

// tag connects the dashboards, for the links between them.
const tag = "anteroom"

// All returns the dashboards by the names of their files.
func All() map[string]Dashboard {
	return map[string]Dashboard{
		"overview.json": overview(),
		"class.json":    class(),
		"redis.json":    redis(),
	}
}

// Files returns the contents of the files.
func Files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, d := range All() {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false) // expressions hold < and >
		e.SetIndent("", "  ")
		if err := e.Encode(d); err != nil {
			return nil, err
		}
		files[name] = b.Bytes()
	}
	return files, nil
}

// dashboard returns one with what all of them share.
func dashboard(uid, title, description string, panels []Panel) Dashboard {
	return Dashboard{
		UID: uid, Title: title, Description: description, Tags: []string{tag},
		GraphTooltip: 1, Refresh: "30s", SchemaVersion: schemaVersion,
		Time: TimeRange{From: "now-1h", To: "now"}, Timezone: "browser",
		Annotations: Annotations{List: []struct{}{}},
		Links: []Link{{
			Title: "Anteroom", Type: "dashboards", Icon: "external link", Tooltip: "The other dashboards about locks",
			Tags: []string{tag}, AsDropdown: true, IncludeVars: true, KeepTime: true,
		}},
		Templating: Templating{List: variables()},
		Panels:     panels,
	}
}

// variables are the same on each dashboard, so that a link between them keeps the choice. The values of each depend
// on those before it.
func variables() []Variable {
	chosen := func(name, label, description, query string) Variable {
		return Variable{
			Type: "query", Name: name, Label: label, Description: description, Datasource: &prometheusSource,
			Definition: query, Query: query, Refresh: 2, Sort: 1, Multi: true, IncludeAll: true, AllValue: ".+",
			Current: &Option{Text: []string{"All"}, Value: []string{"$__all"}},
		}
	}
	return []Variable{
		{Type: "datasource", Name: "datasource", Label: "Data source", Query: "prometheus", Refresh: 1},
		chosen("job", "Job", "Jobs that export Anteroom's metrics.", `label_values(anteroom_managers, job)`),
		chosen("instance", "Instance", "Processes of these jobs.", `label_values(anteroom_managers{job=~"$job"}, instance)`),
		chosen("class", "Lock class", "LockConfig.Name. Figures that have no class are shown whatever is chosen.",
			`label_values(anteroom_held{job=~"$job",instance=~"$instance"}, class)`),
	}
}
