package dashboards

// The structs below are the used part of Grafana's dashboard model, in the order in which it is written. Grafana's
// own names are kept.

// Dashboard is one file.
type Dashboard struct {
	UID           string      `json:"uid"`
	Title         string      `json:"title"`
	Description   string      `json:"description"`
	Tags          []string    `json:"tags"`
	Editable      bool        `json:"editable"`
	GraphTooltip  int         `json:"graphTooltip"` // 1: one crosshair in all panels
	Refresh       string      `json:"refresh"`
	SchemaVersion int         `json:"schemaVersion"`
	Time          TimeRange   `json:"time"`
	Timezone      string      `json:"timezone"`
	Annotations   Annotations `json:"annotations"`
	Links         []Link      `json:"links"`
	Templating    Templating  `json:"templating"`
	Panels        []Panel     `json:"panels"`
}

// TimeRange is the initial time range.
type TimeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Annotations are required by the format; there are none.
type Annotations struct {
	List []struct{} `json:"list"`
}

// Link leads to the other dashboards of this package.
type Link struct {
	Title       string   `json:"title"`
	Type        string   `json:"type"`
	Icon        string   `json:"icon"`
	Tooltip     string   `json:"tooltip"`
	Tags        []string `json:"tags"`
	AsDropdown  bool     `json:"asDropdown"`
	TargetBlank bool     `json:"targetBlank"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
}

// Templating holds the variables.
type Templating struct {
	List []Variable `json:"list"`
}

// Variable is a choice at the top of a dashboard.
type Variable struct {
	Type        string  `json:"type"`
	Name        string  `json:"name"`
	Label       string  `json:"label"`
	Description string  `json:"description,omitempty"`
	Datasource  *Source `json:"datasource,omitempty"`
	Definition  string  `json:"definition,omitempty"`
	Query       string  `json:"query"`
	Refresh     int     `json:"refresh"` // 1: when the dashboard is loaded, 2: when the time changes
	Sort        int     `json:"sort,omitempty"`
	Multi       bool    `json:"multi"`
	IncludeAll  bool    `json:"includeAll"`
	AllValue    string  `json:"allValue,omitempty"`
	Current     *Option `json:"current,omitempty"`
}

// Option is a value of a Variable.
type Option struct {
	Text  []string `json:"text"`
	Value []string `json:"value"`
}

// Source is a data source.
type Source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Panel is one panel.
type Panel struct {
	ID              int              `json:"id"`
	Type            string           `json:"type"`
	Title           string           `json:"title"`
	Description     string           `json:"description"`
	Datasource      Source           `json:"datasource"`
	GridPos         GridPos          `json:"gridPos"`
	FieldConfig     FieldConfig      `json:"fieldConfig"`
	Options         any              `json:"options"`
	Targets         []Target         `json:"targets"`
	Transformations []Transformation `json:"transformations,omitempty"`
}

// GridPos is a position on a grid of 24 columns.
type GridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// Target is one query to the data source.
type Target struct {
	RefID        string `json:"refId"`
	Datasource   Source `json:"datasource"`
	EditorMode   string `json:"editorMode"`
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat,omitempty"`
	Instant      bool   `json:"instant"`
	Range        bool   `json:"range"`
	Format       string `json:"format"`
}

// Transformation changes the results of the targets before they are drawn.
type Transformation struct {
	ID      string         `json:"id"`
	Options map[string]any `json:"options"`
}

// FieldConfig describes how values look.
type FieldConfig struct {
	Defaults  Field      `json:"defaults"`
	Overrides []Override `json:"overrides"`
}

// Field is the look of one series or column.
type Field struct {
	Unit       string         `json:"unit"`
	Decimals   *int           `json:"decimals,omitempty"`
	Min        *float64       `json:"min,omitempty"`
	Max        *float64       `json:"max,omitempty"`
	NoValue    string         `json:"noValue,omitempty"`
	Color      *Color         `json:"color,omitempty"`
	Thresholds *Thresholds    `json:"thresholds,omitempty"`
	Mappings   []Mapping      `json:"mappings,omitempty"`
	Custom     map[string]any `json:"custom,omitempty"`
}

// Color is the source of colours.
type Color struct {
	Mode string `json:"mode"`
}

// Thresholds map values to colours.
type Thresholds struct {
	Mode  string `json:"mode"`
	Steps []Step `json:"steps"`
}

// Step is the colour from Value on; the first has none and covers everything below.
type Step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

// Mapping shows a text in place of a value.
type Mapping struct {
	Type    string         `json:"type"`
	Options map[string]any `json:"options"`
}

// Override is the look of the columns that Matcher selects.
type Override struct {
	Matcher    Matcher    `json:"matcher"`
	Properties []Property `json:"properties"`
}

// Matcher selects columns.
type Matcher struct {
	ID      string `json:"id"`
	Options string `json:"options"`
}

// Property is one part of an Override.
type Property struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}
