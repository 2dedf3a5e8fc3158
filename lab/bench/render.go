package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/lab/bench/report"
)

// render says what to do with results.
type render struct {
	keep  bool   // the file keeps the results of scenarios that were not measured
	only  bool   // nothing is measured
	plots string // a folder for charts; empty: none
	pages string // documents whose blocks are regenerated, separated by commas; empty: none
}

// write writes the results to the file, if there is one, and updates charts and documents from what the file then
// has. What lacks its results stays unchanged.
func (r render) write(w io.Writer, file string, results []measure.Result) error {
	if file != "" && (r.keep || r.only) {
		old, err := readResults(file)
		if err != nil {
			return err
		}
		results = measure.Merge(old, results)
	}
	if len(results) == 0 {
		return fmt.Errorf("%s has no results", file)
	}
	if file != "" && !r.only {
		var text bytes.Buffer
		if err := measure.WriteJSON(&text, results); err != nil {
			return err
		}
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			return err
		}
		// The file has rounded figures, and charts must be reproducible from it.
		var err error
		if results, err = measure.ReadJSON(&text); err != nil {
			return err
		}
	}
	return errors.Join(r.draw(w, results), r.rewrite(w, results))
}

// draw makes the charts.
func (r render) draw(w io.Writer, results []measure.Result) error {
	if r.plots == "" {
		return nil
	}
	if err := os.MkdirAll(r.plots, 0o755); err != nil {
		return err
	}
	for _, c := range report.Charts() {
		svg, there, err := c.Draw(results)
		if err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
		if !there {
			fmt.Fprintf(w, "%s was not drawn: its results are missing\n", c.File)
			continue
		}
		if err := os.WriteFile(filepath.Join(r.plots, c.File), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// rewrite makes the tables of the documents.
func (r render) rewrite(w io.Writer, results []measure.Result) error {
	for page := range strings.SplitSeq(r.pages, ",") {
		if page == "" {
			continue
		}
		if err := rewrite(w, page, results); err != nil {
			return err
		}
	}
	return nil
}

func rewrite(w io.Writer, page string, results []measure.Result) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text, missing, err := report.Rewrite(string(old), results)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	for _, block := range missing {
		fmt.Fprintf(w, "%s: the block %q stays as it is: its results are missing\n", page, block)
	}
	return os.WriteFile(page, []byte(text), 0o644)
}

// readResults reads a file of results; a file that does not exist has none.
func readResults(path string) ([]measure.Result, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return measure.ReadJSON(f)
}
