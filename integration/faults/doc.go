// Package faults tests what the locks promise under one failure at a time: masters that
// die, hang or come back, links that are slow, holders that pause. Package campaign has
// all failures at once.
package faults
