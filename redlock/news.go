package redlock

// What a roster has to say is data: its owner says it, once the roster is free.

// rosterNews is what came up in a roster since that was asked last.
type rosterNews struct {
	notices []notice // in order
	turned  bool     // how a place stands has changed
	changed bool     // something to plan by has

	version   uint64 // rises when whoever has been judged has to be judged again
	witnessed bool   // this process saw the set begin, so no lock is older
}

// A notice is a line for the log, or how a master stands now.
type notice struct {
	standing *MasterStatus // nil: it is a line
	grave    bool          // it is an error and not a warning
	text     string
	fields   []any // names and values
}

// news is what came up since it was asked last.
func (r *roster) news() rosterNews {
	news := r.untold
	news.version, news.witnessed = r.version, r.witnessed
	r.untold = rosterNews{}
	return news
}

func (r *roster) tell(n notice) { r.untold.notices = append(r.untold.notices, n) }

func (r *roster) warn(text string, fields ...any) {
	r.tell(notice{text: text, fields: fields})
}
