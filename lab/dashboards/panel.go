package dashboards

import "fmt"

// The types of panels. All four can be drawn outside Grafana, which is how the pictures
// in the documents were made.
const (
	typeSeries = "timeseries"
	typeStat   = "stat"
	typeBars   = "bargauge"
	typeTable  = "table"
)

// Units, as Grafana names them.
const (
	count     = "short"
	perSecond = "cps"
	seconds   = "s"
	share     = "percentunit"
)

var prometheusSource = Source{Type: "prometheus", UID: "${datasource}"}

// ask is one query of a panel, with the name of its result: a text that may use labels as {{class}}, or the header of
// a column in a table.
type ask struct{ expr, name string }

// newPanel returns a panel without a position.
func newPanel(typ, title, description, unit string, asks []ask) Panel {
	p := Panel{
		Type: typ, Title: title, Description: description, Datasource: prometheusSource,
		FieldConfig: FieldConfig{Defaults: Field{Unit: unit}, Overrides: []Override{}},
	}
	for i, a := range asks {
		now := typ != typeSeries
		t := Target{
			RefID: string(rune('A' + i)), Datasource: prometheusSource, EditorMode: "code",
			Expr: a.expr, LegendFormat: a.name, Instant: now, Range: !now, Format: "time_series",
		}
		if typ == typeTable {
			t.Format, t.LegendFormat = "table", ""
		}
		p.Targets = append(p.Targets, t)
	}
	return p
}

// lines shows figures over time. The axis begins at 0, so that a small change looks small.
func lines(title, description, unit string, asks ...ask) Panel {
	p := newPanel(typeSeries, title, description, unit, asks)
	d := &p.FieldConfig.Defaults
	d.Min = new(float64)
	d.Color = &Color{Mode: "palette-classic"}
	d.Custom = map[string]any{
		"drawStyle": "line", "lineInterpolation": "linear", "lineWidth": 1, "fillOpacity": 10,
		"showPoints": "never", "spanNulls": false,
	}
	p.Options = map[string]any{
		"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
		"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
	}
	return p
}

// bars shows events, as one bar for each interval.
func bars(title, description, unit string, asks ...ask) Panel {
	p := lines(title, description, unit, asks...)
	p.FieldConfig.Defaults.Custom["drawStyle"] = "bars"
	p.FieldConfig.Defaults.Custom["fillOpacity"] = 60
	p.FieldConfig.Defaults.Custom["stacking"] = map[string]any{"mode": "normal", "group": "A"}
	return p
}

// stacked is lines whose sum is meaningful.
func stacked(title, description, unit string, asks ...ask) Panel {
	p := lines(title, description, unit, asks...)
	p.FieldConfig.Defaults.Custom["fillOpacity"] = 30
	p.FieldConfig.Defaults.Custom["stacking"] = map[string]any{"mode": "normal", "group": "A"}
	return p
}

// beside puts the legend on the right, for panels with many lines.
func (p Panel) beside() Panel {
	p.Options = map[string]any{
		"legend":  map[string]any{"displayMode": "list", "placement": "right", "showLegend": true, "calcs": []string{}},
		"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
	}
	return p
}

// atMost limits the axis, for shares.
func (p Panel) atMost(v float64) Panel {
	p.FieldConfig.Defaults.Max = &v
	return p
}

// plain and the others colour values: the higher the worse, or the lower the worse.
var plain = []Step{{Color: "text"}}

func badFrom(v float64) []Step { return []Step{{Color: "green"}, {Color: "red", Value: &v}} }

func warnFrom(warn, bad float64) []Step {
	return []Step{{Color: "green"}, {Color: "orange", Value: &warn}, {Color: "red", Value: &bad}}
}

func goodFrom(warn, good float64) []Step {
	return []Step{{Color: "red"}, {Color: "orange", Value: &warn}, {Color: "green", Value: &good}}
}

// happened marks a count that should be 0. increase extrapolates, so one event may show as slightly less than 1.
var happened = badFrom(0.5)

// reduced is how stats and bar gauges reduce a result to one figure.
func reduced() map[string]any {
	return map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}
}

// noNumber shows a text instead of a share or a mean of nothing.
func noNumber(text string) []Mapping {
	return []Mapping{{Type: "special", Options: map[string]any{
		"match": "nan", "result": map[string]any{"text": text, "color": "text", "index": 0},
	}}}
}

// stat shows one figure. A share of nothing is no number, and says "idle".
func stat(title, description, unit string, steps []Step, expr string) Panel {
	p := newPanel(typeStat, title, description, unit, []ask{{expr, title}})
	d := &p.FieldConfig.Defaults
	d.Color = &Color{Mode: "thresholds"}
	d.Thresholds = &Thresholds{Mode: "absolute", Steps: steps}
	d.NoValue = "no data"
	d.Mappings = noNumber("idle")
	if unit == count {
		d.Decimals = new(int)
	}
	p.Options = map[string]any{
		"reduceOptions": reduced(), "colorMode": "value", "graphMode": "none", "justifyMode": "auto",
		"orientation": "auto", "textMode": "value", "wideLayout": true,
	}
	return p
}

// gauges shows figures next to each other.
func gauges(title, description, unit string, steps []Step, a ask) Panel {
	p := newPanel(typeBars, title, description, unit, []ask{a})
	d := &p.FieldConfig.Defaults
	d.Color = &Color{Mode: "thresholds"}
	d.Thresholds = &Thresholds{Mode: "absolute", Steps: steps}
	d.Min = new(float64)
	if unit == count {
		d.Decimals = new(int)
	}
	p.Options = map[string]any{
		"displayMode": "basic", "orientation": "horizontal", "minVizHeight": 12, "minVizWidth": 8,
		"showUnfilled": true, "valueMode": "color", "namePlacement": "left", "sizing": "auto", "reduceOptions": reduced(),
		"text": map[string]any{"titleSize": 13, "valueSize": 16},
	}
	return p
}

// column is one figure of a table.
type column struct {
	ask
	unit     string
	decimals int
}

// table shows one row for each value of label, and a column for each query.
func table(title, description, label string, columns ...column) Panel {
	var asks []ask
	names := map[string]any{}
	order := map[string]any{label: 0}
	for i, c := range columns {
		asks = append(asks, c.ask)
		value := fmt.Sprintf("Value #%c", 'A'+i)
		names[value], order[value] = c.name, i+1
	}
	if len(columns) == 1 {
		// A single result keeps the plain name.
		names, order = map[string]any{"Value": columns[0].name}, map[string]any{label: 0, "Value": 1}
	}
	p := newPanel(typeTable, title, description, count, asks)
	p.FieldConfig.Defaults.Custom = map[string]any{"minWidth": 80}
	p.FieldConfig.Defaults.Mappings = noNumber("–")
	for _, c := range columns {
		p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, Override{
			Matcher:    Matcher{ID: "byName", Options: c.name},
			Properties: []Property{{"unit", c.unit}, {"decimals", c.decimals}},
		})
	}
	p.Transformations = []Transformation{
		{ID: "merge", Options: map[string]any{}},
		{ID: "organize", Options: map[string]any{
			"excludeByName": map[string]any{"Time": true}, "indexByName": order, "renameByName": names,
		}},
	}
	p.Options = map[string]any{"showHeader": true, "cellHeight": "sm"}
	return p
}

// The grid's width, in columns.
const gridWidth = 24

// grid places panels in rows, from left to right.
type grid struct {
	panels []Panel
	y      int
}

// row adds panels of one height that share the width evenly. Their number divides 24.
func (g *grid) row(height int, panels ...Panel) {
	width := gridWidth / len(panels)
	for i, p := range panels {
		g.put(p, GridPos{H: height, W: width, X: i * width, Y: g.y})
	}
	g.y += height
}

// wide adds two panels, of which the first, a table, gets two thirds of the width.
func (g *grid) wide(height int, first, second Panel) {
	const width = gridWidth * 2 / 3
	g.put(first, GridPos{H: height, W: width, Y: g.y})
	g.put(second, GridPos{H: height, W: gridWidth - width, X: width, Y: g.y})
	g.y += height
}

func (g *grid) put(p Panel, at GridPos) {
	p.ID, p.GridPos = len(g.panels)+1, at
	g.panels = append(g.panels, p)
}
