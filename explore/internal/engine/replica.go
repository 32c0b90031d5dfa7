package engine

import "github.com/yare-go/yare/internal/proxy"

// replica is one of the programs of a run that can stand in for one another. It has one process at a time.
type replica struct {
	// number counts the replicas of the run from 1.
	number int
	// session is the connection of process. Both are nil while the replica is down.
	session *proxy.Session
	process process
	// mayEnd is true for a process whose lease a fault has taken. The process may end by itself.
	mayEnd bool
}

// isRunning reports whether the replica has a process that has not ended by itself.
func (p *replica) isRunning() bool {
	if p.process == nil {
		return false
	}
	select {
	case <-p.process.ended():
		return false
	default:
		return true
	}
}

// stop cuts the process off from the server, and kills it.
func (p *replica) stop() {
	if p.session != nil {
		p.session.CutOff()
	}
	if p.process != nil {
		p.process.kill()
	}
	p.session, p.process = nil, nil
}
