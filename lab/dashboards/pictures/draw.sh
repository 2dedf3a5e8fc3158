#!/usr/bin/env bash
# Draws docs/pictures from data.json; see README.md.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
node_modules/.bin/esbuild draw.jsx --bundle --minify --format=iife --outfile="$work/draw.js" --log-level=error \
  --define:process.env.NODE_ENV='"production"' --loader:.svg=dataurl --loader:.ttf=empty --loader:.woff2=dataurl --loader:.png=dataurl
{ printf 'window.DATA = '; cat data.json; echo ';'; } >"$work/data.js"
cat >"$work/index.html" <<'HTML'
<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="draw.css">
<body style="margin:0"><div id="root"></div><script src="data.js"></script><script src="draw.js"></script>
HTML
mkdir -p ../../../../docs/pictures
for name in overview class redis; do
  # The grid's height, as draw.jsx computes it.
  height=$(node -e 'const d = require("./data.json")[process.argv[1]].dashboard;
    console.log(Math.max(...d.panels.map((p) => p.gridPos.y + p.gridPos.h)) * 38 + 48)' "$name.json")
  chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" \
    --window-size="1400,$height" --virtual-time-budget=10000 --allow-file-access-from-files \
    --screenshot="$work/$name.png" "file://$work/index.html#$name.json" 2>"$work/$name.log" ||
    { cat "$work/$name.log" >&2; exit 1; }
  pngquant --force --strip --output "../../../../docs/pictures/$name.png" 128 "$work/$name.png"
done
ls -l ../../../../docs/pictures
