// Package faults tests what the locks promise under one failure at a time: masters that
// die, hang or come back, links and packets that are lost, disks that are full, holders that pause. Most are scripts
// in testdata/scripts. Package campaign has all failures at once.
package faults
