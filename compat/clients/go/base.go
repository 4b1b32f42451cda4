package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sort"
	"sync"
	"time"
)

// What the Go drivers share: the line protocol, the arguments of the operations, and a store for records that arrive on
// their own.

// record is a record in a produce request or in a take answer; bytes are base64 in JSON, nil is null.
type record struct {
	Topic     string   `json:"topic,omitempty"`
	Partition *int32   `json:"partition"`
	Offset    int64    `json:"offset"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
	Timestamp *int64   `json:"timestamp"`
}

// header is a [name, value] pair.
type header struct {
	name  string
	value []byte
}

func (h header) MarshalJSON() ([]byte, error) { return json.Marshal([]any{h.name, h.value}) }

func (h *header) UnmarshalJSON(data []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	if err := json.Unmarshal(parts[0], &h.name); err != nil {
		return err
	}
	return json.Unmarshal(parts[1], &h.value)
}

// arguments holds every argument of every operation.
type arguments struct {
	Name         string            `json:"name"`
	Bootstrap    string            `json:"bootstrap"`
	Compression  string            `json:"compression"`
	Idempotent   bool              `json:"idempotent"`
	Retries      *int              `json:"retries"`
	TimeoutMs    int               `json:"timeout_ms"`
	MaxBytes     int               `json:"max_bytes"`
	Topic        string            `json:"topic"`
	Records      []record          `json:"records"`
	Group        string            `json:"group"`
	Topics       []string          `json:"topics"`
	Assign       []place           `json:"assign"`
	Reset        string            `json:"reset"`
	Protocol     string            `json:"protocol"`
	Assignor     string            `json:"assignor"`
	Instance     string            `json:"instance"`
	SessionMs    int               `json:"session_ms"`
	FetchBytes   int               `json:"fetch_bytes"`
	RefreshMs    int               `json:"refresh_ms"`
	AutoCreate   bool              `json:"auto_create"`
	Max          int               `json:"max"`
	WaitMs       int               `json:"wait_ms"`
	Offsets      []place           `json:"offsets"`
	Places       []place           `json:"-"`
	Raw          json.RawMessage   `json:"partitions"`
	Partition    int32             `json:"partition"`
	Offset       int64             `json:"offset"`
	Timestamp    int64             `json:"timestamp"`
	Configs      map[string]string `json:"configs"`
	ValidateOnly bool              `json:"validate_only"`
	Isolation    string            `json:"isolation"`
	Work         *working          `json:"work"`
	ClientID     string            `json:"client_id"`
	Key          string            `json:"key"`
	Value        string            `json:"value"`
	Node         int32             `json:"node"`
}

// count is `partitions` as a number.
func (a arguments) count() int {
	var number int
	_ = json.Unmarshal(a.Raw, &number)
	return number
}

// places is `partitions` as [topic, partition] pairs.
func (a arguments) places() []place {
	var found []place
	_ = json.Unmarshal(a.Raw, &found)
	return found
}

// sessionTimeout is the asked for one or the short one of these runs.
func (a arguments) sessionTimeout() time.Duration {
	if a.SessionMs == 0 {
		return 6 * time.Second
	}
	return time.Duration(a.SessionMs) * time.Millisecond
}

// place is [topic, partition], [topic, partition, offset] or [topic, partition, offset, metadata].
type place struct {
	topic     string
	partition int32
	offset    int64
	metadata  string
}

func (p *place) UnmarshalJSON(data []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	for i, into := range []any{&p.topic, &p.partition, &p.offset, &p.metadata} {
		if i < len(parts) {
			if err := json.Unmarshal(parts[i], into); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p place) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{p.topic, p.partition, p.offset, p.metadata})
}

// fault is an error with Kafka's number and name, as far as the library tells them.
type fault struct {
	Name    string `json:"name"`
	Code    *int   `json:"code"`
	Message string `json:"message"`
}

func (f fault) Error() string { return f.Name + ": " + f.Message }

// kafkaFault makes a fault of Kafka's own numbers.
func kafkaFault(name string, code int, message string) fault {
	return fault{Name: name, Code: &code, Message: message}
}

type answer map[string]any

// library is one client library: its version, its operations, and how its errors are read.
type library interface {
	version() string
	operations() map[string]func(arguments) (answer, error)
	translate(error) fault
}

// store keeps what a consumer got until `take` asks for it.
type store struct {
	mutex    sync.Mutex
	records  []record
	assigned map[string]map[int32]bool
	err      error
	wake     chan struct{}
}

func newStore() *store {
	return &store{assigned: map[string]map[int32]bool{}, wake: make(chan struct{}, 1)}
}

func (s *store) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *store) add(records ...record) {
	s.mutex.Lock()
	s.records = append(s.records, records...)
	s.mutex.Unlock()
	s.signal()
}

func (s *store) fail(err error) {
	s.mutex.Lock()
	s.err = err
	s.mutex.Unlock()
	s.signal()
}

// give notes partitions as assigned.
func (s *store) give(partitions map[string][]int32) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for topic, list := range partitions {
		if s.assigned[topic] == nil {
			s.assigned[topic] = map[int32]bool{}
		}
		for _, partition := range list {
			s.assigned[topic][partition] = true
		}
	}
}

// revoke takes partitions back and drops their records.
func (s *store) revoke(partitions map[string][]int32) {
	s.mutex.Lock()
	for topic, list := range partitions {
		for _, partition := range list {
			delete(s.assigned[topic], partition)
		}
	}
	s.mutex.Unlock()
	s.drop(func(r record) bool { return s.assigned[r.Topic][*r.Partition] })
}

// drop forgets the records that `keep` does not want.
func (s *store) drop(keep func(record) bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var kept []record
	for _, r := range s.records {
		if keep(r) {
			kept = append(kept, r)
		}
	}
	s.records = kept
}

func (s *store) take(a arguments, translate func(error) fault) answer {
	deadline := time.After(time.Duration(a.WaitMs) * time.Millisecond)
	for {
		s.mutex.Lock()
		ready := len(s.records) > 0 || s.err != nil
		s.mutex.Unlock()
		if ready {
			break
		}
		select {
		case <-s.wake:
			continue
		case <-deadline:
		}
		break
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	count := min(len(s.records), a.Max)
	records := append([]record{}, s.records[:count]...)
	s.records = s.records[count:]
	pairs := [][]any{}
	for topic, list := range s.assigned {
		for partition := range list {
			pairs = append(pairs, []any{topic, partition})
		}
	}
	sort.Slice(pairs, func(i, j int) bool { return fmt.Sprint(pairs[i]) < fmt.Sprint(pairs[j]) })
	said := answer{"records": records, "assignment": pairs}
	if s.err != nil {
		said["error"] = translate(s.err)
		s.err = nil
	}
	return said
}

// serve reads requests and answers them, one after the other.
func serve(lib library) {
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(answer{"ready": true, "version": lib.version()})
	operations := lib.operations()
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var request struct {
			ID int    `json:"id"`
			Op string `json:"op"`
		}
		var a arguments
		if err := errors.Join(json.Unmarshal(line, &request), json.Unmarshal(line, &a)); err != nil {
			_ = out.Encode(answer{"id": request.ID, "error": fault{Name: "BAD_REQUEST", Message: err.Error()}})
			continue
		}
		_ = out.Encode(carryOut(lib, operations[request.Op], request.ID, a))
	}
}

func carryOut(lib library, operation func(arguments) (answer, error), id int, a arguments) (said answer) {
	defer func() {
		if panicked := recover(); panicked != nil {
			fmt.Fprintf(os.Stderr, "panic: %v\n%s", panicked, debug.Stack())
			said = answer{"id": id, "error": fault{Name: "PANIC", Message: fmt.Sprint(panicked)}}
		}
	}()
	if operation == nil {
		return answer{"id": id, "error": fault{Name: "NO_SUCH_OPERATION"}}
	}
	ok, err := operation(a)
	if err != nil {
		var known fault
		if !errors.As(err, &known) {
			fmt.Fprintln(os.Stderr, err)
			known = lib.translate(err)
			if known.Code == nil && errors.Is(err, os.ErrDeadlineExceeded) {
				// The library gave up waiting for an answer.
				known = kafkaFault("REQUEST_TIMED_OUT", 7, err.Error())
			}
		}
		return answer{"id": id, "error": known}
	}
	if ok == nil {
		ok = answer{}
	}
	return answer{"id": id, "ok": ok}
}

// pointer is the address of a copy.
func pointer[T any](value T) *T { return &value }
