// Package fault names what goes wrong in tests. A fault has the same name in the timelines and the simulation of
// redlock, in the scripts and the model of its roster, and in the campaign and the soak. Whoever adds a fault adds its name here:
//
//	name     what happens                                     toy master or its link      real server (rig)
//	pause    the process stands still; what is sent waits     Master.Pause, Resume        Server.Pause, Resume: SIGSTOP
//	kill     the process ends, and nobody listens             Master.Kill                 Server.Kill: SIGKILL
//	restart  it ends, and begins again with its keys          Master.Restart(true)
//	forget   it ends, and begins again empty                  Master.Restart(false)   Server.Kill, Start
//	flush    all its keys are deleted                         Master.Flush                FLUSHALL, FLUSHDB
//	jump     its clock is set                                 Master.Jump                 Clock.Set: libfaketime
//	refuse   commands get an error, such as BUSY (all on      Master.Refuse               ACL SETUSER
//	         keys), MISCONF (writes), OOM (what needs memory)
//	cut      connections break                                Link.Cut                    Link.Cut, SetDown
//	mute     the network swallows everything without an error Link.Mute, Unmute           Link.Mute; Network.Lose: iptables
//	full     its disk is full                                                             Server.FillDisk
//	slow     bytes take longer                                Link.SetDelay               Link.Delay
//
// Without more words, a fault strikes masters. Other faults of the same kind say whom: "pause proxy".
package fault

// The names.
const (
	Pause   = "pause"
	Kill    = "kill"
	Restart = "restart"
	Forget  = "forget"
	Flush   = "flush"
	Jump    = "jump"
	Refuse  = "refuse"
	Cut     = "cut"
	Mute    = "mute"
	Slow    = "slow"

	// Proxy and Upstream say that a fault strikes one of these.
	Proxy    = " proxy"
	Upstream = " upstream"
)
