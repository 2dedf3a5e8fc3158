package anteroom_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/sync/observe"
	"github.com/anteroom/anteroom/watchdog"
)

// The lists must hold every value of their type: what is missing would be a series
// that does not exist until the day it is needed.
func TestLabels_ListsHoldEveryValueOfTheirType(t *testing.T) {
	remarks := []string{watchdog.None.String(), watchdog.HolderBlocked.String(), watchdog.SelfLate.String()}
	for _, c := range []struct {
		name      string
		list, all []string
	}{
		{"CheckNames", observe.Labels().Checks, allOf[watchdog.Check]()},
		{"FindingNames", slices.Concat(observe.Labels().Findings, remarks), allOf[watchdog.Finding]()},
		{"RecoveryOutcomes", append([]string{watchdog.Acted.String()}, observe.Labels().RecoveryOutcomes...), allOf[watchdog.RecoveryOutcome]()},
		{"CommandOutcomes", observe.Labels().CommandOutcomes, allOf[lettucecompat.Outcome]()},
	} {
		same(t, c.name, c.list, c.all)
	}
}

// allOf returns the names of all values of T, which counts from 0 and calls what
// lies outside "invalid".
func allOf[T interface {
	~uint8
	fmt.Stringer
}]() []string {
	var all []string
	for v := 0; v <= 255 && T(v).String() != "invalid"; v++ {
		all = append(all, T(v).String())
	}
	return all
}

// Actions, commands and the sets of observer.go are constants of a string type or
// literals, which a program cannot enumerate; so their sources are read.
func TestLabels_ListsHoldEveryConstant(t *testing.T) {
	same(t, "ActionNames", observe.Labels().Actions, constants(t, "../watchdog", func(name, typ string) bool {
		return typ == "" && strings.HasPrefix(name, "Action")
	}))
	errorsOnly := []observe.Outcome{observe.OutcomeMistake}
	all := slices.Concat(observe.Labels().Acquire, observe.Labels().Release, observe.Labels().Renew, errorsOnly)
	slices.Sort(all)
	same(t, "Outcomes", slices.Compact(all), constantsOf[observe.Outcome](t, "Outcome"))
	var reasons []observe.LossReason
	for _, r := range constants(t, "../renewal", func(_, of string) bool { return of == "Reason" }) {
		reasons = append(reasons, observe.LossReason(r))
	}
	same(t, "LossReasons", observe.Labels().Losses, reasons)
	same(t, "EventKinds", observe.Labels().Events, constantsOf[observe.EventKind](t, "EventKind"))
}

func TestLabels_CommandNamesAreThoseThatTheWireReports(t *testing.T) {
	var reported []string
	for _, f := range parse(t, "../lettuce_compat") {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "name" && n.Recv != nil { // that of a Command
					ast.Inspect(n.Body, func(n ast.Node) bool {
						if r, is := n.(*ast.ReturnStmt); is {
							reported = append(reported, text(r.Results[0]))
						}
						return true
					})
				}
			case *ast.CallExpr:
				if fun, ok := n.Fun.(*ast.SelectorExpr); ok && fun.Sel.Name == "observe" {
					reported = append(reported, text(n.Args[0])) // "" where it is a variable
				}
			}
			return true
		})
	}
	slices.Sort(reported)
	reported = slices.DeleteFunc(slices.Compact(reported), func(name string) bool { return name == "" })
	same(t, "CommandNames", observe.Labels().Commands, append(reported, "status"))
}

func same[S ~string](t *testing.T, name string, got, want []S) {
	t.Helper()
	g, w := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if len(w) == 0 {
		t.Errorf("%s: found nothing to compare it with", name)
	}
	if !slices.Equal(g, w) {
		t.Errorf("%s\n  holds   %v\n  want    %v", name, g, w)
	}
}

func constantsOf[S ~string](t *testing.T, typ string) []S {
	t.Helper()
	var list []S
	for _, v := range constants(t, "observe", func(_, of string) bool { return of == typ }) {
		list = append(list, S(v))
	}
	return list
}

// constants returns the values of the string constants in dir that are asked for, by
// their name and declared type ("" for none).
func constants(t *testing.T, dir string, matches func(name, typ string) bool) []string {
	t.Helper()
	var list []string
	for _, f := range parse(t, dir) {
		for _, d := range f.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.CONST {
				continue
			}
			for _, s := range gen.Specs {
				spec := s.(*ast.ValueSpec)
				typ := ""
				if id, ok := spec.Type.(*ast.Ident); ok {
					typ = id.Name
				}
				for i, v := range spec.Values {
					if s := text(v); s != "" && matches(spec.Names[i].Name, typ) {
						list = append(list, s)
					}
				}
			}
		}
	}
	return list
}

// parse reads the package in dir without its tests.
func parse(t *testing.T, dir string) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// text returns the value of a string literal, "" for anything else.
func text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, _ := strconv.Unquote(lit.Value)
	return s
}
