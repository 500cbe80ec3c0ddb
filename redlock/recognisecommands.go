package redlock

import "slices"

// What commands do in a trial. Any other command on the key, and any that
// does more than to delete the owner's lock, makes the trial bad.

// there is what EXISTS says.
func (t *trial) there() int64 {
	if t.holds == holdsNothing {
		return 0
	}
	return 1
}

// get ends the script with an error where the key holds no string, unless the
// error is caught.
func (t *trial) get(caught bool) luaValue {
	switch t.holds {
	case holdsNothing:
		return luaValue{kind: valueFalse}
	case holdsOwner:
		return luaValue{kind: valueWord, word: t.owner}
	case holdsAnother:
		return luaValue{kind: valueAnother}
	}
	if !caught {
		t.end(luaValue{kind: valueError})
	}
	return luaValue{kind: valueError}
}

func (t *trial) delete() {
	switch {
	case t.ended || t.holds == holdsNothing:
	case t.holds == holdsOwner:
		t.deleted, t.holds = true, holdsNothing
	default:
		t.fail()
	}
}

// accompany is a command on a key beside the lock, as libraries have that wake
// their waiters through a list. Only somebody whose lock it was may do so.
func (t *trial) accompany(name string, key word, args []luaValue) luaValue {
	wakes := len(args) == 2 && (args[1].isString() || args[1].kind == valueNumber) &&
		slices.Contains([]string{"lpush", "rpush", "pexpire", "expire"}, name)
	clears := len(args) == 1 && (name == "del" || name == "unlink")
	if !wakes && !clears || t.key.index == 0 || t.holds != holdsOwner && !t.deleted {
		return t.fail()
	}
	if !slices.Contains(t.companions, key) {
		t.companions = append(t.companions, key)
	}
	return luaValue{kind: valueSomeNumber}
}
