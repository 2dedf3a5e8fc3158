package lettucecompat

import (
	"bufio"
	"fmt"
	"strings"
	"testing"
)

// What comes on a tracking connection is bounded, too: nothing ends the process, and nothing is made that has not come.
func TestTrack_ASpoiledFrame(t *testing.T) {
	for _, text := range []string{
		"$4611686018427387904\r\n", "*4611686018427387904\r\n", "%4611686018427387904\r\n", "$67108864\r\nabc", "*1048576\r\n:1\r\n", "$x\r\n", "\r\n",
		strings.Repeat("*1\r\n", 1000), strings.Repeat("x", 1<<20),
	} {
		f := frame{r: bufio.NewReader(strings.NewReader(text))}
		if _, err := f.value(0); err == nil || cap(f.raw) > 2*spareRoom {
			t.Errorf("%.30q: %v, and %d bytes", text, err, cap(f.raw))
		}
	}
	f := frame{r: bufio.NewReader(strings.NewReader(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"))}
	if kind, err := f.value(0); kind != '>' || err != nil || fmt.Sprintf("%s", f.texts) != "[invalidate k]" {
		t.Errorf("%c, %v, %s", kind, err, f.texts)
	}
}
