package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/pgtest"
	"github.com/semel-dev/semel/postgres"
)

// A place is where everything runs: one PostgreSQL server and one folder.
type place struct {
	server  *pgtest.Server
	dir     string
	count   int
	cleanup []func()
}

func newPlace(ctx context.Context) (*place, error) {
	server, err := pgtest.Start()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "semel-bench-")
	if err != nil {
		server.Stop()
		return nil, err
	}
	return &place{server: server, dir: dir}, nil
}

func (p *place) close() {
	p.clear()
	p.server.Stop()
	os.RemoveAll(p.dir)
}

// later runs f when the line is done.
func (p *place) later(f func()) { p.cleanup = append(p.cleanup, f) }

func (p *place) clear() {
	for i := len(p.cleanup) - 1; i >= 0; i-- {
		p.cleanup[i]()
	}
	p.cleanup = nil
}

// database makes an empty database for this line.
func (p *place) database(ctx context.Context) (string, error) {
	p.count++
	name := fmt.Sprintf("bench_%d", p.count)
	exec := func(sql string) error {
		conn, err := pgx.Connect(ctx, p.server.URL("postgres"))
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, sql)
		return err
	}
	if err := exec("CREATE DATABASE " + name); err != nil {
		return "", err
	}
	p.later(func() { exec("DROP DATABASE " + name + " WITH (FORCE)") })
	return p.server.URL(name), nil
}

// ledger opens a ledger of ours in a database of its own.
func (p *place) ledger(ctx context.Context, options *postgres.Options) (*semel.Ledger, *postgres.Store, string, error) {
	url, err := p.database(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	store, err := postgres.Open(ctx, url, options)
	if err != nil {
		return nil, nil, "", err
	}
	p.later(func() { store.Close() })
	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: []semel.Kind{{Name: "export"}}})
	if err != nil {
		return nil, nil, "", err
	}
	p.later(func() { ledger.Close() })
	return ledger, store, url, nil
}

// pool opens a bare pool with as many connections as ours has.
func (p *place) pool(ctx context.Context, url string, conns int32) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err == nil {
		p.later(pool.Close)
	}
	return pool, err
}

// spread runs f in n goroutines for the length of a turn.
func (p *place) spread(n int, f func() error) (sample, error) {
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	m := p.measure()
	end := time.Now().Add(*length)
	for range n {
		all.Go(func() {
			for time.Now().Before(end) && failed.Load() == nil {
				if err := f(); err != nil {
					failed.Store(&err)
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return sample{}, *err
	}
	return m.sample(int(done.Load())), nil
}

// A measurement is of time, CPU and memory.
type measurement struct {
	p         *place
	begin     time.Time
	cpu       cpuTime
	allocated uint64
}

func (p *place) measure() measurement {
	return measurement{p, time.Now(), p.cpu(), allocated()}
}

// allocated is how many bytes this process has allocated since it began.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func (m measurement) sample(n int) sample {
	end := m.p.cpu()
	return sample{n: n, rate: float64(n) / time.Since(m.begin).Seconds(), heap: float64(allocated()-m.allocated) / float64(n),
		cpu: cpuTime{(end.program - m.cpu.program) / float64(n), (end.database - m.cpu.database) / float64(n)}}
}

// cpuTime is in µs: of this process with the children that it waited for, and of
// PostgreSQL. It is 0 where /proc is not what it is on Linux.
type cpuTime struct{ program, database float64 }

func (c cpuTime) String() string { return fmt.Sprintf("%.0f+%.0f", c.program, c.database) }

func (p *place) cpu() (c cpuTime) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if syscall.Getrusage(who, &r) == nil {
			c.program += float64(r.Utime.Sec+r.Stime.Sec)*1e6 + float64(r.Utime.Usec+r.Stime.Usec)
		}
	}
	port := p.server.Addr[strings.LastIndex(p.server.Addr, ":")+1:]
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	master := ""
	for _, file := range files {
		if line, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline")); err == nil && strings.Contains(string(line), "\x00port="+port+"\x00") {
			master = filepath.Base(filepath.Dir(file))
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
		pid := filepath.Base(filepath.Dir(file))
		if master == "" || pid != master && fields[1] != master {
			continue
		}
		ticks := fields[11:13] // user and system
		if pid == master {
			ticks = fields[11:15] // and those of the backends that have ended
		}
		for _, t := range ticks {
			n, _ := strconv.ParseFloat(t, 64)
			c.database += n * 1e4 // 100 ticks in a second
		}
	}
	return c
}
