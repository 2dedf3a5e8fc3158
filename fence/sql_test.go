package fence_test

import (
	"database/sql"
	"errors"
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
