package lettucecompat_test

import (
	"os"
	"testing"
)

// simMutant is a change that the simulation must notice: of the script, what by what; or of what clients do.
type simMutant struct {
	name   string
	script []string
	wrong  string
}

// simMutants are those of the rules, S11 to S24.
var simMutants = []simMutant{
	{"S12: no statement is void", []string{
		"if r.n >= number or l and l.own and tonumber(l.own.n) >= number then", "if false then",
		"tonumber(n) < number and", "",
	}, ""},
	{"S13: have is not checked", []string{"units > 0 and (r.units < units or r.n < since)", "false"}, ""},
	{"S13: since is not checked", []string{"(r.units < units or r.n < since)", "r.units < units"}, ""},
	{"S13: a call hides that units were gone", []string{"was.units < q.kept and q.n - 1 or q.n", "q.n"}, ""},
	{"S13: what is not kept stays", []string{"local kept = math.min(had, keep)", "local kept = want > 0 and had or math.min(had, keep)"}, ""},
	{"S17: a scan without the own record", []string{"if r.units > 0 then count(r) end\n  for", "if r.units > 0 and found[2] then count(record_of(found[2])) end\n  for"}, ""},
	{"S17: no scan", []string{"if there and now >= h.next then scan() end", "", "not scanned then", "false then"}, ""},
	{"S17: next is not lowered", []string{"alone and q.ends or math.min(h.next, q.ends)", "alone and q.ends or h.next"}, ""},
	{"S17: what is over still counts", []string{"tonumber(c) > now and tonumber(b) or 0", "tonumber(b)"}, ""},
	{"S18: the key does not live until the last end", []string{"local till = q.ends > h.till and q.ends + 1000", "local till = h.till == 0 and q.ends + 1000"}, ""},
	{"S6: the own capacity only", []string{"(others > 0 and math.min(h.cap, q.cap) or q.cap)", "q.cap"}, ""},
	{"S20: who comes passes the line", []string{"(not l or l.places == 0)", "true"}, ""},
	{"S20: the smaller passes", []string{"if not accepts(p) then return p end", "if not accepts(p) then return nil end"}, ""},
	{"S20: the own units count", []string{"local others = h.held - q.record.units", "local others = h.held", "    others = h.held - q.record.units", "    others = h.held"}, ""},
	{"S22: nobody is told", []string{"if blocked and l.contended ~= '1' then", "if false then", "and blocked ~= p and '1' or '0'", "and '0' or '0'"}, ""},
	{"S5: a reader has the record's token", []string{"if h.held == 0 then last_token(", "if false then last_token("}, ""},
	{"S5: the last token is not named", []string{"kept < had and fence and ARGV[9] then", "false then"}, ""},
	{"S14: given when answered", nil, "given when answered"},
	{"S14: a call counts above a later keep", nil, "a call counts above a later keep"},
	{"S15: the lease counts from the answer", nil, "the lease counts from the answer"},
	{"S15: a call gives the lease", nil, "a call gives the lease"},
	{"S15: a call counts from the last statement", nil, "a call counts from the last statement"},
	{"S15: an old call counts", nil, "an old call counts"},
	{"S13: a confirmation keeps what it has", nil, "a confirmation keeps what it has"},
	{"S12: a statement is sent twice", []string{"r.n >= number or", "r.n > number or"}, "a statement is sent twice"},
}

func TestUnits_SimulationFindsMutants(t *testing.T) {
	b := onReal(t, nil)
	rounds := uint64(4)
	if os.Getenv("ANTEROOM_LONG") != "" {
		rounds = 40
	}
	for _, m := range simMutants {
		t.Run(m.name, func(t *testing.T) {
			sha := loadSim(t, b.raw, m.script...)
			for seed := range rounds {
				for _, mode := range modes {
					if found := simulate(b.raw, sha, mode, seed, m.wrong, 4000); found != "" {
						t.Logf("%v, seed %d: %.160s", mode, seed, found)
						return
					}
				}
			}
			t.Error("not found")
		})
	}
}
