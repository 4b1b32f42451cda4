package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// working is what an application does with records: it works on them for a while, writes down what it has done, and commits.
// The file survives a kill of the process; README.md has its lines.
type working struct {
	Log      string `json:"log"`
	Batch    int    `json:"batch"`
	RecordUs int    `json:"record_us"`
	mutex    sync.Mutex
	file     *os.File
}

// errUnanswered is what a commit says whose outcome the library does not tell.
var errUnanswered = errors.New("unanswered")

// item is a record as far as the work on it goes.
type item struct {
	partition int32
	offset    int64
	value     []byte
}

func (w *working) write(lines string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.file == nil {
		file, err := os.OpenFile(w.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			panic(err)
		}
		w.file = file
	}
	if _, err := w.file.WriteString(lines); err != nil {
		panic(err)
	}
}

// note writes a line with the time; nobody works where w is nil.
func (w *working) note(kind string, words ...any) {
	if w == nil {
		return
	}
	line := fmt.Sprint(kind, " ", time.Now().UnixMicro())
	for _, word := range words {
		line += " " + strings.ReplaceAll(fmt.Sprint(word), "\n", " ")
	}
	w.write(line + "\n")
}

// on works on records and commits behind them; `commit` is given the next offset of each partition.
func (w *working) on(items []item, commit func(map[int32]int64) error) {
	if len(items) == 0 {
		return
	}
	begun := time.Now().UnixMicro()
	time.Sleep(time.Duration(len(items)*w.RecordUs) * time.Microsecond)
	ended := time.Now().UnixMicro()
	var rows strings.Builder
	next := map[int32]int64{}
	for _, i := range items {
		head := "-"
		if i.value != nil {
			first, _, _ := bytes.Cut(i.value, []byte("|"))
			head = string(first)
		}
		fmt.Fprintf(&rows, "R %d %d %d %d %s\n", begun, ended, i.partition, i.offset, head)
		next[i.partition] = i.offset + 1
	}
	w.write(rows.String())
	err := commit(next)
	if err == errUnanswered {
		return
	}
	if err != nil {
		// The application goes on; what it did not commit comes again.
		w.note("F", "commit", err)
		return
	}
	for partition, offset := range next {
		w.note("C", partition, offset)
	}
}
