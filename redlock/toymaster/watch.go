package toymaster

// WATCH, also with the script that precedes a transaction on a key.

func (m *Master) watchKeys(s *Session, args [][]byte) []byte {
	if s.watched == nil {
		s.watched = map[string]Entry{}
	}
	for _, key := range args[1:] {
		s.watched[string(key)], _ = m.Find(s.db, key)
	}
	return replyOK
}

func (m *Master) unwatch(s *Session, _ [][]byte) []byte {
	s.watched = nil
	return replyOK
}

// sawChange tells whether a watched key has changed, and ends the WATCH.
func (m *Master) sawChange(s *Session) (changed bool) {
	for key, was := range s.watched {
		now, _ := m.Find(s.db, []byte(key))
		changed = changed || now != was
	}
	s.watched = nil
	return changed
}
