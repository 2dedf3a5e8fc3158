package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/fence"
)

var (
	_ fence.Tx = (*sql.Tx)(nil)
	_ fence.Tx = (*sql.Conn)(nil)
)

// What protects nothing is refused before the database is asked. How databases answer is tested in lab/fence.
func TestSQL_Refuses(t *testing.T) {
	var g fence.SQL
	for what, err := range map[string]error{
		"a *sql.DB":        g.Check(t.Context(), new(sql.DB), "r", 1),
		"token 0":          g.Check(t.Context(), new(sql.Tx), "r", 0),
		"a negative token": g.Check(t.Context(), new(sql.Tx), "r", -1),
	} {
		if err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestSQL_Table(t *testing.T) {
	for _, d := range []fence.Dialect{fence.PostgreSQL, fence.MySQL, fence.SQLite} {
		ours, theirs := fence.SQL{Dialect: d}.Schema(), fence.SQL{Dialect: d, Table: `shop."fence"`}.Schema()
		if strings.Replace(ours, " anteroom_fence ", ` shop."fence" `, 1) != theirs || ours == theirs {
			t.Errorf("%s\n%s", ours, theirs)
		}
	}
}

// recorder keeps the statement that it is given, and answers with the error of the context.
type recorder struct {
	*sql.DB
	statement string
}

func (r *recorder) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	r.statement = query
	return r.DB.QueryRowContext(ctx, query, args...)
}

// The recipe has the statement for drivers other than database/sql.
func TestSQL_TheStatementOfTheRecipe(t *testing.T) {
	db := sql.OpenDB(nil) // never connected: the context has ended
	defer db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &recorder{DB: db}
	if err := (fence.SQL{}).Check(ctx, r, "r", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("the error of the database is hidden: %v", err)
	}
	text, err := os.ReadFile("../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	if r.statement == "" || !strings.Contains(string(text), "\n"+r.statement+"\n") {
		t.Errorf("docs/recipes.md does not have\n%s", r.statement)
	}
}
