// Package campaign tests that the promises hold under all faults at once.
//
// TestCampaign has clients of every habit (package work), three proxies, and every fault at random, a resize and failovers
// among them. A register and the history judge it. A new fault is a campaignFault in faults_test.go.
// mutant_test.go shows that the campaign finds a violation if there is one. TestSoak has
// clients of every kind, faults and reloads. Afterwards the proxies must have kept nothing
// of them.
package campaign
