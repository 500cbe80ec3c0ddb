package roster

// What a roster has to say is data: its owner says it, once the roster is free.

// News is what came up in a roster since that was asked last.
type News struct {
	Notices []Notice // in order
	Turned  bool     // how a place stands has changed
	Changed bool     // something to plan by has

	Version   uint64 // rises when whoever has been judged has to be judged again
	Witnessed bool   // this process saw the set begin, so no lock is older
}

// A Notice is a line for the log, or how a master stands now.
type Notice struct {
	Standing *MasterStatus // nil: it is a line
	Grave    bool          // it is an error and not a warning
	Text     string
	Fields   []any // names and values
}

// Drain gives what came up since it was asked last.
func (r *Roster) Drain() News {
	news := r.untold
	news.Version, news.Witnessed = r.version, r.witnessed
	r.untold = News{}
	return news
}

func (r *Roster) tell(n Notice) { r.untold.Notices = append(r.untold.Notices, n) }

func (r *Roster) warn(text string, fields ...any) {
	r.tell(Notice{Text: text, Fields: fields})
}
