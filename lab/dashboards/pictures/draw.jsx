// Draws a dashboard with Grafana's own components, from the file that main.go writes.
// The page's hash is the name of the dashboard.
import * as React from 'react';
import { createRoot } from 'react-dom/client';
import 'uplot/dist/uPlot.min.css';

// By require, because some packages that the ES modules of these import have no default
// export that esbuild could see.
const { FieldType, ThemeContext, VizOrientation, createTheme, dateTime, getDisplayProcessor, toDataFrame } = require('@grafana/data');
const { BarGauge, BigValue, GlobalStyles, PanelChrome, Table, TimeSeries } = require('@grafana/ui');

// Grafana's grid: 24 columns, rows of 30 pixels, 8 pixels in between.
const WIDTH = 1400, GAP = 8, ROW = 30, COLUMN = (WIDTH - GAP) / 24;
const theme = createTheme({ colors: { mode: 'dark' } });
const timeZone = 'utc';

const { dashboard, answers, from, to } = window.DATA[decodeURIComponent(location.hash.slice(1))];
const timeRange = { from: dateTime(from), to: dateTime(to), raw: { from: dateTime(from), to: dateTime(to) } };

const number = (text) => (text === 'NaN' ? NaN : text === '+Inf' ? Infinity : text === '-Inf' ? -Infinity : Number(text));
const nameOf = (format, labels) => format.replace(/{{\s*(\w+)\s*}}/g, (_, label) => labels[label] ?? '');

// field returns a field with what fieldConfig says about a column of that name.
function field(panel, name, type, values) {
  const { defaults, overrides } = panel.fieldConfig;
  const config = { ...defaults, custom: { ...defaults.custom }, displayName: name };
  for (const { matcher, properties } of overrides) {
    if (matcher.id === 'byName' && matcher.options === name) {
      properties.forEach(({ id, value }) => (config[id] = value));
    }
  }
  return { name, type, values, config };
}

function withDisplay(frame) {
  for (const f of frame.fields) {
    f.display = getDisplayProcessor({ field: f, theme, timeZone });
  }
  return frame;
}

// named returns all series of a panel with their names.
function named(panel) {
  return answers[panel.id].flatMap(({ refId, series }) => {
    const target = panel.targets.find((t) => t.refId === refId);
    return (series ?? []).map((s) => ({ name: nameOf(target.legendFormat, s.labels), points: s.points }));
  });
}

function Lines({ panel, width, height }) {
  const series = named(panel);
  const times = [...new Set(series.flatMap((s) => s.points.map((p) => p.at * 1000)))].sort((a, b) => a - b);
  const frame = toDataFrame({
    fields: [
      { name: 'Time', type: FieldType.time, values: times, config: {} },
      ...series.map(({ name, points }, i) => {
        const values = new Map(points.map((p) => [p.at * 1000, number(p.value)]));
        return field(panel, name, FieldType.number, times.map((t) => (isFinite(values.get(t)) ? values.get(t) : null)));
      }),
    ],
  });
  frame.fields.slice(1).forEach((f, i) => (f.state = { seriesIndex: i }));
  return (
    <TimeSeries frames={[withDisplay(frame)]} width={width} height={height} timeRange={timeRange} timeZone={timeZone}
      legend={panel.options.legend} options={panel.options} />
  );
}

function Stat({ panel, width, height }) {
  const [one] = named(panel);
  const frame = withDisplay(toDataFrame({ fields: [field(panel, panel.title, FieldType.number, [number(one.points[0].value)])] }));
  const { colorMode, graphMode, justifyMode, textMode } = panel.options;
  return (
    <BigValue theme={theme} width={width} height={height} value={frame.fields[0].display(frame.fields[0].values[0])} colorMode={colorMode}
      graphMode={graphMode} justifyMode={justifyMode} textMode={textMode} />
  );
}

// Bars come in the order of their values, and what is 0 is left out, for room.
function Bars({ panel, width, height }) {
  const rows = named(panel).map(({ name, points }) => ({ name, value: number(points[0].value) }))
    .filter((r) => r.value >= 0.5).sort((a, b) => b.value - a.value).slice(0, Math.floor(height / 26));
  const max = Math.max(...rows.map((r) => r.value));
  const frame = withDisplay(toDataFrame({ fields: rows.map((r) => field(panel, r.name, FieldType.number, [r.value])) }));
  const each = Math.min(44, Math.floor(height / rows.length));
  const values = frame.fields.map((f) => ({ ...f.display(f.values[0]), title: f.name }));
  const longest = (key) => values.reduce((a, v) => (String(v[key] ?? '').length > a.length ? String(v[key]) : a), '');
  return frame.fields.map((f, i) => (
    <div key={f.name} style={{ height: each, paddingBottom: 4 }}>
      <BarGauge theme={theme} width={width} height={each - 4} field={{ ...f.config, max }} value={values[i]} display={f.display}
        orientation={VizOrientation.Horizontal} displayMode={panel.options.displayMode} showUnfilled={panel.options.showUnfilled}
        valueDisplayMode={panel.options.valueMode} namePlacement={panel.options.namePlacement} text={panel.options.text} itemSpacing={8}
        alignmentFactors={{ title: longest('title'), text: longest('text'), suffix: longest('suffix') }} />
    </div>
  ));
}

// Cells merges the answers by their label and renames the columns, as the panel's
// transformations do.
function Cells({ panel, width, height }) {
  const { renameByName, indexByName } = panel.transformations.find((t) => t.id === 'organize').options;
  const label = Object.keys(indexByName).find((k) => indexByName[k] === 0);
  const rows = new Map();
  for (const { refId, series } of answers[panel.id]) {
    for (const s of series ?? []) {
      const key = s.labels[label] ?? '';
      rows.set(key, { ...rows.get(key), ['Value #' + refId]: number(s.points[0].value) });
    }
  }
  const keys = [...rows.keys()].sort();
  const columns = Object.keys(renameByName).sort((a, b) => indexByName[a] - indexByName[b]);
  const frame = withDisplay(toDataFrame({
    fields: [
      field(panel, label, FieldType.string, keys),
      ...columns.map((c) => field(panel, renameByName[c], FieldType.number, keys.map((k) => rows.get(k)[c] ?? null))),
    ],
  }));
  return <Table data={frame} width={width} height={height} />;
}

const kinds = { timeseries: Lines, stat: Stat, bargauge: Bars, table: Cells };

function Picture() {
  const bottom = Math.max(...dashboard.panels.map((p) => p.gridPos.y + p.gridPos.h));
  return (
    <div style={{ position: 'relative', width: WIDTH, height: bottom * (ROW + GAP) + GAP + 40, background: theme.colors.background.canvas }}>
      <div style={{ padding: '10px 12px', fontSize: 20 }}>{dashboard.title}</div>
      {dashboard.panels.map((panel) => {
        const { x, y, w, h } = panel.gridPos;
        const Kind = kinds[panel.type];
        const width = w * COLUMN - GAP, height = h * (ROW + GAP) - GAP;
        return (
          <div key={panel.id} style={{ position: 'absolute', left: x * COLUMN + GAP, top: y * (ROW + GAP) + 44 }}>
            <PanelChrome title={panel.title} width={width} height={height}>
              {(innerWidth, innerHeight) => <Kind panel={panel} width={innerWidth} height={innerHeight} />}
            </PanelChrome>
          </div>
        );
      })}
    </div>
  );
}

createRoot(document.getElementById('root')).render(
  <ThemeContext.Provider value={theme}>
    <GlobalStyles />
    <Picture />
  </ThemeContext.Provider>
);
