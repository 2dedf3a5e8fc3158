package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// serverTests returns the names of the tests of a folder that start a redis-server: those that mention testredis, or a
// function of the folder's test files that does, and so on. A mention is enough, so a test that only may start one
// is run too.
func serverTests(folder string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	mentions := map[string][]string{} // by function; a method counts as a function of its name
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && x.Name == "testredis" {
						mentions[f.Name.Name] = append(mentions[f.Name.Name], "testredis")
					}
				case *ast.Ident:
					mentions[f.Name.Name] = append(mentions[f.Name.Name], n.Name)
				}
				return true
			})
		}
	}
	reach := map[string]bool{"testredis": true}
	for grown := true; grown; {
		grown = false
		for f, names := range mentions {
			if !reach[f] && slices.ContainsFunc(names, func(n string) bool { return reach[n] }) {
				reach[f], grown = true, true
			}
		}
	}
	var tests []string
	for f := range reach {
		if strings.HasPrefix(f, "Test") && f != "TestMain" || strings.HasPrefix(f, "Fuzz") {
			tests = append(tests, f)
		}
	}
	slices.Sort(tests)
	return tests, nil
}
