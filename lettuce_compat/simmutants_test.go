package lettucecompat_test

import (
	"os"
	"testing"
)

// simMutant is a change that the simulation must notice: of the script, what by what; or of what clients do.
type simMutant struct {
	name   string
	found  string // the mode that finds it soonest
	script []string
	wrong  string
}

// simMutants are those of the rules, S11 to S24.
var simMutants = []simMutant{
	{"S12: no command is void", "rw", []string{
		"if r.n >= number or l and l.own and tonumber(l.own.n) >= number then", "if false then",
		"tonumber(n) < number and", "",
	}, ""},
	{"S13: have is not checked", "rw/deletes", []string{"units > 0 and (r.units < units or r.n < since or keep > 0 and r.cap > of)", "false"}, ""},
	{"S13: since is not checked", "rw/deletes", []string{"r.units < units or r.n < since or", "r.units < units or"}, ""},
	{"S13: a call hides that units were gone", "rw/deletes", []string{"was.units < q.kept and 1000000000000000 or q.n", "q.n"}, ""},
	{"S13: what is not kept stays", "rw/no faults", []string{"local kept = math.min(had, keep)", "local kept = want > 0 and had or math.min(had, keep)"}, ""},
	{"S17: a scan without the own record", "sem", []string{"if r.units > 0 then count(r) end\n  for", "if r.units > 0 and found[2] then count(record_of(found[2])) end\n  for"}, ""},
	{"S17: no scan", "sem/calm", []string{"if there and now >= h.next then scan() end", "", "not scanned then", "false then"}, ""},
	{"S17: next is not lowered", "rw/no faults", []string{"alone and q.ends or math.min(h.next, q.ends)", "alone and q.ends or h.next"}, ""},
	{"S17: what is over still counts", "rw", []string{"tonumber(c) > now and tonumber(b) or 0", "tonumber(b)"}, ""},
	{"S18: the key does not live until the last end", "rw/no faults", []string{"local till = q.ends > h.till and q.ends + 1000", "local till = h.till == 0 and q.ends + 1000"}, ""},
	{"S6: the own capacity only", "sem/no faults", []string{"(others > 0 and math.min(h.cap, q.cap) or q.cap)", "q.cap"}, ""},
	{"S20: who comes passes the line", "rw/no faults", []string{"(not l or l.places == 0)", "true"}, ""},
	{"S20: the smaller passes", "rw/no faults", []string{"if not accepts(p) then return p end", "if not accepts(p) then return nil end"}, ""},
	{"S20: the own units count", "rw/no faults", []string{"local others = h.held - q.record.units", "local others = h.held", "    others = h.held - q.record.units", "    others = h.held"}, ""},
	{"S22: nobody is notified", "rw/no faults", []string{"if blocked and l.contended ~= '1' then", "if false then", "and blocked ~= p and '1' or '0'", "and '0' or '0'"}, ""},
	{"S5: a reader has the record's token", "rw", []string{"if first then last_token(", "if false then last_token("}, ""},
	{"S5: the last token is not named", "rw/no faults", []string{"not text and fence and ARGV[9] then", "false then"}, ""},
	{"S14: given when answered", "rw/no faults", nil, "given when answered"},
	{"S14: a call counts above a later keep", "sem/no faults", nil, "a call counts above a later keep"},
	{"S15: the lease counts from the answer", "rw/calm", nil, "the lease counts from the answer"},
	{"S15: a call gives the lease", "sem", nil, "a call gives the lease"},
	{"S15: a call counts from the last command", "rw", nil, "a call counts from the last command"},
	{"S15: an old call counts", "rw/calm", nil, "an old call counts"},
	{"S13: a confirmation keeps what it has", "rw", nil, "a confirmation keeps what it has"},
	{"S12: a command is sent twice", "rw", []string{"r.n >= number or", "r.n > number or"}, "a command is sent twice"},
}

// TestUnits_SimulationFindsMutants_Lab plays each mutant until it is found: in the mode that finds it soonest, with ANTEROOM_LONG in all.
func TestUnits_SimulationFindsMutants_Lab(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	long := os.Getenv("ANTEROOM_LONG") != ""
	for _, m := range simMutants {
		t.Run(m.name, func(t *testing.T) {
			sha := loadSim(t, b.raw, m.script...)
			for seed := range uint64(20) {
				for _, mode := range modes {
					if !long && mode.String() != m.found {
						continue
					}
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
