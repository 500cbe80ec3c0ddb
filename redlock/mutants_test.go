package redlock

// mutants leave out one rule each.
var mutants = []mutant{
	{
		rule:     "a quorum is more than half",
		edits:    []edit{{"quorum/tally.go", "func (t Tally) Acquire() Verdict {\n\tneed := Size(t.Masters)", "func (t Tally) Acquire() Verdict {\n\tneed := max(1, t.Masters/2)"}},
		caughtBy: "TestTimelineMajorityWins",
		seeds:    "1,3,4",
	},
	{
		rule:     "a release needs a quorum of answers, and a possible quorum of deletions",
		edits:    []edit{{"quorum/tally.go", "t.Granted > 0 && t.Answered() >= need && t.Granted+t.Failed >= need", "t.Granted > 0"}},
		caughtBy: "quorum/TestData",
	},
	{
		rule:     "a vote of who may have forgotten locks is none",
		edits:    []edit{{"quorum/answers.go", "case a.State == Answered && grants(a.Value)", "case a.State.Heard() && grants(a.Value)"}, {"quorum/answers.go", "case a.State.Failed():", "case a.State.Failed() && a.State != Discounted:"}},
		caughtBy: "quorum/TestData",
	},
	{
		rule:     "a refusal is told only as a quorum worded it",
		edits:    []edit{{"quorum/tally.go", "case v != Lost || refusals.Granted >= Size(refusals.Masters):", "case true:"}},
		caughtBy: "quorum/TestData",
	},
	{
		rule:     "validity counts the time that elapsed",
		edits:    []edit{{"acquire.go", "return ttl - elapsed - ", "return ttl - "}},
		caughtBy: "TestTimelineValidityIsTTLMinusElapsedMinusDrift",
	},
	{
		rule:     "validity takes off the drift",
		edits:    []edit{{"acquire.go", "return ttl - elapsed - time.Duration(float64(ttl)*l.settings().ClockDrift) - 2*time.Millisecond", "return ttl - elapsed"}},
		caughtBy: "TestTimelineValidityIsTTLMinusElapsedMinusDrift",
	},
	{
		rule:     "a vote read after the deadline is late",
		edits:    []edit{{"ballot.go", "b.verdict == Pending && now.After(b.deadline)", "false"}},
		caughtBy: "TestTimelineAVoteReadAfterTheDeadlineIsLate",
	},
	{
		rule:     "acquires of one key take turns",
		edits:    []edit{{"acquire.go", "l.turns.takeOrBeAnswered(", "newTurns().takeOrBeAnswered("}},
		caughtBy: "TestTimelineAcquiresOfOneKeyTakeTurns",
	},
	{
		rule:     "a refusal answers only those that waited when it was asked for",
		edits:    []edit{{"turns.go", "w.shares && w.arrival <= u.sent", "w.shares"}},
		caughtBy: "TestTimelineARefusalDoesNotAnswerThoseThatCameLater",
	},
	{
		rule:     "a master that owes a vote on a key is not asked for it again",
		edits:    []edit{{"ballot.go", "free = b.owing.masters", ""}},
		caughtBy: "TestTimelineAMasterThatOwesAVoteOnAKeyIsNotAskedForItAgain",
	},
	{
		rule:     "a marker that could not be raised is raised later",
		edits:    []edit{{"stream/stream.go", "s.longest = 0\n\t\t}\n\t\tat +=", "}\n\t\tat +="}},
		caughtBy: "TestTimelineAMarkerThatCouldNotBeRaisedIsRaisedWithTheNextLock",
	},
	{
		rule:     "what was won in vain is owed until it is undone",
		edits:    []edit{{"ballot.go", "case b.keep(b):", "case func() bool { b.settle(); return b.keep(b) }():"}},
		caughtBy: "TestTimelineWhatAClientThatHasGoneWonIsOwedUntilItIsUndone",
	},
	{
		rule:     "a release that was not heard is kept while an earlier write is unanswered",
		edits:    []edit{{"stream/connect.go", "d.Blind = d.Blind || written[d.Key]", ""}},
		caughtBy: "TestTimelineAReleaseReachesTheCopyOfAnUnansweredWrite",
	},
	{
		rule:     "who tries again at once waits for what masters are about to answer",
		edits:    []edit{{"ballot.go", "l.owed.await(l, q.db, q.keys)", ""}},
		caughtBy: "TestTimelineWhoTriesAgainAtOnceWaitsForWhatIsOwed",
	},
	{
		rule:     "a release is sent again behind late grants",
		edits:    []edit{{"releaseagain.go", "if masters == 0 {", "if true {"}},
		caughtBy: "TestTimelineAReleaseIsSentAgainBehindALateGrant",
	},
	{
		rule:     "a release that is sent again spares what was taken since",
		edits:    []edit{{"releaseagain.go", "l.creations.count(db, d.Key) != before", "false"}},
		caughtBy: "TestTimelineAReleaseIsNotSentAgainWhereTheKeyWasTakenSince",
	},
	{
		rule:     "a release by what may be a constant is not sent again",
		edits:    []edit{{"releaseagain.go", "len(d.Value) < stream.ShortValue || ", ""}},
		caughtBy: "TestTimelineAReleaseByAConstantValueIsNotSentAgain",
	},
	{
		rule:     "a key exists that a quorum holds something under",
		edits:    []edit{{"quorum/existence.go", "!held.Possible()", "!alike.Possible()"}},
		caughtBy: "TestTimelineAllAnswersAgreeOnWhetherTheKeyExists",
	},
	{
		rule:     "a copy in quarantine completes no quorum",
		edits:    []edit{{"read.go", "\t\tvote:    voteOfReading,", "\t\tvote: voteOfReading, counts: present,"}},
		caughtBy: "TestTimelineACopyInQuarantineCompletesNoQuorum",
	},
	{
		rule:     "a DEL deletes every value that could have a quorum",
		edits:    []edit{{"quorum/answers.go", "a.State.Heard() && present(a.Value) && !slices", "false && !slices"}},
		caughtBy: "TestTimelineADELDeletesEveryValueThatCouldHaveAQuorum",
	},
	{
		rule:     "what is to be released may be a vote of a client that is acquiring, unless it was quiet",
		edits:    []edit{{"release.go", "len(values) != 1 && !areQuiet(b.answers, quiet)", "len(values) == 0"}},
		caughtBy: "TestTimelineADELSparesVotesWhereItIsNotClearWhatIsHeld",
	},
	{
		rule:     "strays are what has not changed for longer than a ballot lasts",
		edits:    []edit{{"effect/image.go", "Compare(before, i)", "Kept"}, {"effect/image.go", "Near(before.Expiry(), i.Expiry(), Tolerance)", "true"}},
		caughtBy: "TestTimelineMendingSparesWhatHasChanged",
	},
	{
		rule:     "masters that gave no answer or may have forgotten count as holders",
		edits:    []edit{{"mend.go", "!quorum.Count(c, effect.Image.There).Possible()", "quorum.Count(c, effect.Image.There).Granted < quorum.Size(len(c))"}},
		caughtBy: "TestTimelineALockThatMastersMayHaveForgottenIsNoStray",
	},
	{
		rule:     "copies are made equal only where all masters may vote",
		edits:    []edit{{"mend.go", "all = all && a.State == quorum.Answered && before[i].State == quorum.Answered &&", "all = all &&"}},
		caughtBy: "TestTimelineCopiesAreNotMadeEqualWhileAMasterMayHaveForgotten",
	},
	{
		rule:     "what a quorum has stands for all, also before larger integers",
		edits:    []edit{{"mend.go", "t.Granted >= quorum.Size(len(c))", "t.Granted > len(c)"}},
		caughtBy: "TestTimelineCopiesThatDifferAreMadeEqual",
	},
	{
		rule:     "a counter that crossed another is not put back behind",
		edits:    []edit{{"effect/due.go", "case wins.Wrote() && counted(", "case false && counted("}},
		caughtBy: "TestTimelineCountersThatCrossStayEqual",
	},
	{
		rule:     "a run waits until copies are made equal",
		edits:    []edit{{"run.go", "split(o) && l.areMended(", "false && l.areMended("}},
		caughtBy: "TestTimelineACounterThatDiffersIsMadeEqualAndThenCounts",
	},
	{
		rule:     "a master that has stopped answering is suspended",
		edits:    []edit{{"stream/stream.go", "now.Sub(s.calls[s.head].sent) > s.owner.Timeout()", "false"}},
		caughtBy: "TestTimelineASuspendedMasterIsSkippedByAcquiresAndGetsItsReleases",
	},
	{
		rule: "what a lost ballot granted is undone",
		edits: []edit{{"acquire.go", "if b.verdict != Won {\n\t\tfor i, a := range b.answers {",
			"if b.verdict == Pending {\n\t\tfor i, a := range b.answers {"}},
		caughtBy: "TestTimelineAFailedAcquireUnlocksEverywhere",
	},
	{
		rule: "a late grant is undone",
		edits: []edit{{"acquire.go", "if verdict != Won {\n\t\t\t\tl.takeBack(i, a, r)",
			"if verdict == Pending {\n\t\t\t\tl.takeBack(i, a, r)"}},
		caughtBy: "TestTimelineALateVoteIsUndone",
	},
	{
		rule: "an unknown vote is undone only by a value that is nobody else's",
		edits: []edit{
			{"acquire.go", "a.State == quorum.Unknown && len(r.value) >= stream.ShortValue", "a.State == quorum.Unknown"},
			{"stream/queue.go", "len(d.Value) >= ShortValue && (", "("},
		},
		caughtBy: "TestTimelineAnUnknownVoteWithAShortValueIsLeftToItsTTL",
	},
	{
		rule:     "the successor of a connection kills it first",
		edits:    []edit{{"stream/connect.go", "for _, old := range s.earlier {", "for _, old := range s.earlier[:0] {"}},
		caughtBy: "TestTimelineTheSuccessorKillsItsPredecessorFirst",
	},
	{
		rule:     "debts come before new calls",
		edits:    []edit{{"stream/connect.go", "s.out = append(first, s.out...)", "s.out = append(s.out, first...)"}},
		caughtBy: "TestTimelineDebtsComeBeforeNewCalls",
	},
	{
		rule:     "a connection is killed until the kill was heard",
		edits:    []edit{{"stream/connect.go", "s.earlier = append(s.earlier, self.identity)", "s.earlier = []identity{self.identity}"}},
		caughtBy: "TestTimelineAKillThatWasNotHeardIsRepeated",
	},
	{
		rule:     "debts come before new calls on an open connection, too",
		edits:    []edit{{"stream/stream.go", "if s.state == up && len(s.debts)+s.unpaid > 0 {", "if false {"}},
		caughtBy: "TestTimelineAReleaseThatAMasterCouldNotServeSparesTheNextHolder",
	},
	{
		rule:     "ballots on a key are queued in one order everywhere",
		edits:    []edit{{"ballot.go", "ordered := l.order.lock(b.db, b.keys)", "ordered := uint64(0)"}},
		caughtBy: "TestTimelineRequestsReachAllMastersInOneOrder",
	},
	{
		rule: "an extension takes its turn, and asks no master that owes a vote",
		edits: []edit{
			{"extend.go", "pass, err := l.turns.take(ctx, r.DB, true, key)", "pass, err := func() {}, ctx.Err()"},
			{"extend.go", "creates: true", "creates: false"},
		},
		caughtBy: "TestTimelineAnExtensionCountsOnlyTheHoldersOwnVotes",
	},
	{
		rule:     "no bare DEL goes to a master",
		edits:    []edit{{"release.go", "releaseScript.append(nil, [][]byte{key}, value, []byte(\"-1\"))", "resp.AppendCommand(nil, []byte(\"DEL\"), key)"}},
		caughtBy: "TestTimelineAReleaseDeletesOnlyWhatAQuorumHolds",
	},
	{
		rule:     "a release waits for a master that is away",
		edits:    []edit{{"stream/stream.go", "if s.state != closed {", "if s.state > closed {"}},
		caughtBy: "TestTimelineAMasterThatWasAwayIsToldOfTheRelease",
	},
	{
		rule:     "a release that was under way when the connection broke is not forgotten",
		edits:    []edit{{"stream/connect.go", "d = c.Asker.Owed(c)", "_ = c.Asker.Owed(c)"}},
		caughtBy: "TestTimelineAMasterThatWasAwayIsToldOfTheRelease",
	},
	{
		rule:     "what waits for a master that is away is bounded by its size",
		edits:    []edit{{"stream/stream.go", "|| s.debtBytes >= MaxDebtBytes {", "{"}},
		caughtBy: "TestTimelineWhatWaitsForAMasterIsBoundedByItsSize",
	},
	{
		rule:     "what a master leaves unanswered is bounded by its size",
		edits:    []edit{{"stream/send.go", "&& s.asking < MaxAsking", ""}},
		caughtBy: "TestTimelineWhatWaitsForAMasterIsBoundedByItsSize",
	},
	{
		rule:     "a lock without TTL has a provisional one until it is won",
		edits:    []edit{{"acquire.go", "\t\tttl = l.settings().RestartDelay\n", "\t\tttl = 10000 * time.Hour\n"}},
		caughtBy: "TestTimelineAStrayCopyOfALockWithoutTTLIsNotForEver",
	},
	{
		rule:     "a lock without TTL is won only when a quorum keeps it",
		edits:    []edit{{"acquire.go", "r.ttl != 0 || l.makePermanent(r) == Won", "r.ttl != 0 || l.makePermanent(r) != Pending"}},
		caughtBy: "TestTimelineALockThatCannotBeMadePermanentIsNotWon",
	},
	{
		rule:     "an expiry that a master missed is delivered",
		edits:    []edit{{"extend.go", "if !a.State.Failed() || r.Persist {", "if true {"}},
		caughtBy: "TestTimelineAnExpiryThatAMasterMissedIsDeliveredByValue",
	},
	{
		rule:     "a swap returns the expected value only from a quorum",
		edits:    []edit{{"swap.go", "if o.Value = r.another(b.answers); o.Value == nil {", "if o.Verdict, o.Value = Won, r.Expected; o.Value == nil {"}},
		caughtBy: "TestTimelineAtMostOneOfRacingSwapsWins",
	},
	{
		rule:     "a split vote is tried again",
		edits:    []edit{{"acquire.go", "o.Verdict != Lost || granted == 0 {", "o.Verdict != Pending || granted == 0 {"}},
		caughtBy: "TestTimelineASplitVoteIsRetriedAfterARandomDelay",
	},
	{
		rule:     "a lock that is held is not tried again",
		edits:    []edit{{"acquire.go", "held.Verdict == Won {\n\t\t\treturn o // a bare", "held.Verdict == Pending {\n\t\t\treturn o // a bare"}},
		caughtBy: "TestTimelineHeldByABareMajorityIsNotRetried",
	},
	{
		rule:     "what a client won that has gone is given back",
		edits:    []edit{{"acquire.go", "ctx.Err() == nil &&", "true &&"}},
		caughtBy: "TestTimelineAClientThatHasGoneIsNotRetriedAndHoldsNothing",
	},
	{
		rule: "an extension is never undone",
		edits: []edit{{"extend.go", "\to := b.outcome()\n\tswitch o.Verdict {",
			"\to := b.outcome()\n\tif o.Verdict != Won {\n\t\tfor i, a := range b.answers {\n\t\t\tif a.Value.changed {\n\t\t\t\tl.masters[i].stream(r.DB).Deliver(&stream.Debt{Exact: resp.AppendCommand(nil, []byte(\"PEXPIRE\"), r.Key, resp.Decimal(1000))}, time.Now(), false)\n\t\t\t}\n\t\t}\n\t}\n\tswitch o.Verdict {"}},
		caughtBy: "TestTimelineAChangedTTLIsNeverUndone",
	},
	{
		rule:     "votes are compared by the state afterwards",
		edits:    []edit{{"effect/votes.go", "return slices.EqualFunc(a.After, b.After, func(x, y Image) bool { return rdb.Same(x.lasting(), y.lasting()) })", "return slices.Equal(a.Changes(), b.Changes())"}},
		caughtBy: "TestRunComparesStatesNotChanges",
	},
	{
		rule:     "a transaction runs only where the quorum's image stands",
		edits:    []edit{{"watch.go", "images == nil || !slices.EqualFunc(images, w.agreed, effect.SameContent)", "images == nil"}},
		caughtBy: "TestWatchAbortsWhereAMasterShowedSomethingElse",
	},
	{
		rule:     "a transaction goes out only where its guard has said yes",
		edits:    []edit{{"watch.go", "if !resp.IsOK(guard[0]) || !ok {", "if false && ok {"}},
		caughtBy: "TestGuardsThatDoNotSay",
	},
	{
		rule:     "a master that forgot does not vote for a while",
		edits:    []edit{{"roster/plan.go", "Marker: r.marker(p, r.set, SinceNow, now)", "Marker: r.marker(p, r.set, 0, now)"}},
		caughtBy: "TestTimelineAMasterThatForgotDoesNotVoteUntilEveryLockHasEnded",
	},
	{
		rule: "every database has its marker",
		edits: []edit{
			{"stream/batch.go", "(len(buf) > 0 || s.due) && !s.embedded", "(len(buf) > 0 || s.due) && !s.embedded && s.db == 0"},
			{"stream/batch.go", "if s.embedded {", "if s.embedded || s.db != 0 {"},
		},
		caughtBy: "TestTimelineEveryDatabaseHasItsMarker",
	},
	{
		rule:     "memory that was replaced without a restart is amnesia",
		edits:    []edit{{"roster/observations.go", "return r.ID != recorded && r.Was", "return false"}},
		caughtBy: "TestTimelineAFailoverThereAndBackHasForgotten",
	},
	{
		rule:     "what ROLE tells of counts before INFO is asked",
		edits:    []edit{{"roster/judge.go", "case now.Unsure:", "case false:"}},
		caughtBy: "TestTimelineAFailoverBetweenTwoBatchesGrantsNothing",
	},
	{
		rule:     "the replication id is asked now and then",
		edits:    []edit{{"stream/batch.go", "now.Sub(s.askedInfo) < infoPause", "!s.askedInfo.IsZero()"}},
		caughtBy: "TestTimelineAFailoverThereAndBackIsNoticedByReaders",
	},
	{
		rule:     "a master that replicates is asked INFO with every batch",
		edits:    []edit{{"stream/batch.go", "check.role = s.sole &&", "check.role ="}},
		caughtBy: "TestTimelineRoleIsAskedInsteadOfInfo",
	},
	{
		rule:     "a live master that becomes a replica stops voting",
		edits:    []edit{{"roster/judge.go", "case s.Replica:", "case false:"}},
		caughtBy: "TestTimelineALiveMasterThatBecomesAReplicaStopsVoting",
	},
	{
		rule: "each batch is checked",
		edits: []edit{
			{"stream/batch.go", "(len(buf) > 0 || s.due) && !s.embedded", "s.due && !s.embedded"},
			{"stream/batch.go", "if s.embedded {", "if true {"},
			{"stream/batch.go", "j := Judgement{Votes: true, Covers: math.MaxInt64}", "j := Judgement{Votes: s.info != nil, Covers: math.MaxInt64}"},
		},
		caughtBy: "TestTimelineAFlushIsNoticedByTheVeryNextBatch",
	},
	{
		rule:     "a clock that jumps forward has forgotten",
		edits:    []edit{{"clock.go", "by.Least <= roster.ClockTolerance && by.Most >= -roster.ClockTolerance", "by.Most >= -roster.ClockTolerance"}},
		caughtBy: "TestTimelineAClockThatJumpsForwardHasForgotten",
	},
	{
		rule:     "a quorum that jumps while others do not has jumped",
		edits:    []edit{{"roster/jumps.go", "!r.othersHaveJumped(masters):", "false:"}},
		caughtBy: "TestTimelineAQuorumThatJumpsWhileOthersDoNotHasJumped",
	},
	{
		rule:     "masters that each jump by another amount have jumped",
		edits:    []edit{{"roster/jumps.go", "case !by.possible():", "case false:"}},
		caughtBy: "TestTimelineAQuorumThatJumpsWhileOthersDoNotHasJumped",
	},
	{
		rule:     "a suspended machine's time goes on",
		edits:    []edit{{"clock.go", "return m.at.Sub(began) + m.slept", "return m.at.Sub(began)"}},
		caughtBy: "TestTimelineASuspendedMachineIsNoJump",
	},
	{
		rule:     "what was under way when the machine was suspended does not count",
		edits:    []edit{{"clock.go", "return by, read.slept != sent.slept", "return by, false"}},
		caughtBy: "TestTimelineASuspendedMachineIsNoJump",
	},
	{
		rule:     "a clock that is put right does not lock its master out",
		edits:    []edit{{"roster/plan.go", "case s.ahead:", "case false:"}},
		caughtBy: "TestTimelineAClockThatIsPutRightDoesNotLockItsMasterOut",
	},
	{
		rule:     "a clock's jump concerns databases that nobody uses who sees it",
		edits:    []edit{{"roster/plan.go", "m.Kind, m.jump = WriteAll, s.jump", "m.jump = s.jump"}},
		caughtBy: "TestTimelineAClockThatJumpsConcernsDatabasesThatNobodyUses",
	},
	{
		rule:     "clocks' bounds widen only as fast as clocks may drift",
		edits:    []edit{{"clock.go", "c.least, c.most = max(c.least-apart, least), min(c.most+apart, most)", "c.least, c.most = least, max(most, most-apart)"}},
		caughtBy: "TestTimelineManySmallJumpsCountLikeALargeOne",
	},
	{
		rule:     "a new set begins in quarantine",
		edits:    []edit{{"roster/plan.go", "if !r.fresh {", "if false {"}},
		caughtBy: "TestTimelineANewSetBeginsInQuarantine",
	},
	{
		rule:     "a database that was flushed is not taken for a new one",
		edits:    []edit{{"roster/plan.go", "m.Cause, m.Reason = Emptied, \"the marker of this", "m.Marker.Since = 0\n\t\treturn m, true\n\t\tm.Cause, m.Reason = Emptied, \"the marker of this"}},
		caughtBy: "TestTimelineADatabaseThatWasFlushedIsNotUsedForTheFirstTime",
	},
	{
		rule:     "a jump that grew while it was being written down stays one",
		edits:    []edit{{"roster/plan.go", "m.jump > 0 && s.jump == m.jump", "m.jump > 0"}},
		caughtBy: "roster/TestRosterAJumpThatGrewIsNotWrittenDown",
	},
	{
		rule:     "a restart is on record in databases that nobody uses",
		edits:    []edit{{"roster/plan.go", "m.Kind, m.Cause, m.Reason = WriteAll, Restarted,", "m.Cause, m.Reason = Restarted,"}},
		caughtBy: "TestTimelineADatabaseThatNobodyUsesIsRestartedWithTheOthers",
	},
	{
		rule:     "the first use of a database is no restart",
		edits:    []edit{{"roster/roster.go", "restarted = r.runs[p.Master] != \"\" && r.runs[p.Master] != run", "restarted = r.sight(p).run != run"}},
		caughtBy: "TestTimelineAnotherDatabaseDoesNotHideAJump",
	},
	{
		rule:     "a mark that comes too late is refused",
		edits:    []edit{{"certify.go", "return max(roster.MarkAgain, 2*l.settings().MasterTimeout)", "return time.Hour"}},
		caughtBy: "TestTimelineALateMarkDoesNotCertifyWhatWasFlushed",
	},
	{
		rule:     "databases that were swapped do not vote",
		edits:    []edit{{"roster/judge.go", "case m.DB != p.DB:", "case false:"}, {"roster/plan.go", "case own.DB != p.DB:", "case false:"}},
		caughtBy: "TestTimelineDatabasesThatWereSwappedDoNotVote",
	},
	{
		rule:     "a database that a set of the first version used and that was flushed has forgotten",
		edits:    []edit{{"roster/plan.go", "used = append(used, s.marker.Databases...)", ""}},
		caughtBy: "TestTimelineASetOfTheFirstVersionGoesOn",
	},
	{
		rule:     "a longer TTL is on record before it is granted",
		edits:    []edit{{"stream/send.go", "if m.Lives > s.longest && !s.embedded {", "if false {"}, {"ballot.go", "|| j.Covers < b.lives", ""}},
		caughtBy: "TestTimelineALongerTTLIsOnRecordBeforeItIsGranted",
	},
	{
		rule:     "a longer TTL that may be about to be granted is waited for",
		edits:    []edit{{"roster/plan.go", "r.readSince(p, forgot.Add(limits.MasterTimeout))", "r.readSince(p, forgot)"}, {"roster/plan.go", "limits.MasterTimeout+readPause", "readPause"}},
		caughtBy: "TestTimelineTheLongestTTLIsNotLearnedTooEarly",
	},
	{
		rule:     "the longest TTL on record goes down when it has ended",
		edits:    []edit{{"roster/plan.go", "now.Sub(s.turnedAt) >= own.turns(limits)", "false"}},
		caughtBy: "TestTimelineTheLongestTTLGoesDown",
	},
	{
		rule:     "a record does not turn before what was on it has ended",
		edits:    []edit{{"roster/marker.go", "kept := max(m.Before, limits.RestartDelay)", "kept := limits.RestartDelay"}},
		caughtBy: "TestTimelineTheLongestTTLGoesDown",
	},
	{
		rule:     "who has not read that the record turned is covered",
		edits:    []edit{{"roster/marker.go", "past >= 0 && past < turnGrace", "past < 0"}},
		caughtBy: "roster/TestMarkerCoversWhatStreamsHaveNotReadYet",
	},
	{
		rule:     "what was on record on a master that went away is remembered",
		edits:    []edit{{"roster/ttlmemory.go", "if s.present() && m.Set == r.set &&", "if false &&"}},
		caughtBy: "roster/TestRosterWhatWasOnRecordIsRemembered",
	},
	{
		rule:     "a quarantine is as long as the longest TTL granted",
		edits:    []edit{{"roster/marker.go", "return max(restartDelay, min(longest, most))", "return restartDelay"}},
		caughtBy: "TestTimelineAMasterThatForgotDoesNotVoteUntilEveryLockHasEnded",
	},
	{
		rule:     "a replaced master stops voting",
		edits:    []edit{{"roster/judge.go", "case m.Joined[p.Master] != r.joined[p.Master]:", "case false:"}},
		caughtBy: "TestTimelineAReplacedMasterStopsVotingAndTheNewOneBeginsInQuarantine",
	},
	{
		rule:     "a replaced master does not come back empty behind an old list",
		edits:    []edit{{"roster/newcomer.go", "\t\treturn theReplaced\n", "\t\treturn theMember\n"}},
		caughtBy: "TestTimelineAReplacedMasterStopsVotingAndTheNewOneBeginsInQuarantine",
	},
	{
		rule:     "a promotion takes the vote from the server of before",
		edits:    []edit{{"roster/plan.go", " || p.DB == 0 && r.awaitsPromotion(p, s, now, limits) {", " {"}},
		caughtBy: "roster/TestPromotionTakesTheVoteFromTheServerOfBefore",
	},
	{
		rule:     "enough masters hear of a promotion before its quarantine begins",
		edits:    []edit{{"roster/newcomer.go", "if r.heardOf(master) >= r.mustHear(master) {", "if true {"}},
		caughtBy: "roster/TestPromotionTakesTheVoteFromTheServerOfBefore",
	},
	{
		rule:     "a server that a process has not met joins by an epoch",
		edits:    []edit{{"roster/promotion.go", "case !moves && r.taken(p, s) == theMember:", "case !moves:"}},
		caughtBy: "TestTimelineAServerThatAProcessIsStartedWithTakesTheVoteFromTheOldOne",
	},
	{
		rule:     "a server that a reload brought in gives way only to a reload",
		edits:    []edit{{"roster/newcomer.go", "&& (met != \"\" || name != \"\"):", "&& met != \"\":"}},
		caughtBy: "TestTimelineAServerThatAReloadBroughtInGivesWayOnlyToAReload",
	},
	{
		rule:     "those that remember hear of a newcomer first",
		edits:    []edit{{"roster/newcomer.go", "return min(enough, remember)", "return min(enough, remember, 1)"}},
		caughtBy: "roster/TestRosterWhoMustHearOfANewcomer",
	},
	{
		rule:     "a process that knows a master is left to mend it",
		edits:    []edit{{"roster/promotion.go", "case !moves && now.Sub(s.since) < newcomerPause:", "case false:"}},
		caughtBy: "roster/TestRosterANewcomerWaitsForThoseWhoMayKnowIt",
	},
	{
		rule:     "a copy that may be of the next message has that told again",
		edits:    []edit{{"notify/heard.go", "h.tellNextAgain(x, now)", ""}},
		caughtBy: "notify/TestMessageIsToldAgainWhenACopyMayBeOfAnEarlierOne",
	},
	{
		rule:     "what was told early is told again when more copies come",
		edits:    []edit{{"notify/heard.go", "if !x.untold {", "if !x.untold && x.copies == 1 {"}},
		caughtBy: "notify/TestMessageIsToldAgainWhenItsQuorumComesLate",
	},
	{
		rule:     "a master begins another message behind the last that it told of",
		edits:    []edit{{"notify/heard.go", "for next > 0 && !list[next-1].masters[master] {", "for next > 0 {"}},
		caughtBy: "notify/TestSameMessageTwiceIsToldTwice",
	},
	{
		rule:     "messages may be missed where fewer than a quorum were listened to",
		edits:    []edit{{"notify/subscription.go", "s.exposed = s.exposed || others < quorum.Size(len(l.masters))", ""}},
		caughtBy: "TestGapThatIsNoticedLate",
	},
	{
		rule:     "a gap is told when a quorum is heard again",
		edits:    []edit{{"notify/subscriber.go", "s.exposed = s.exposed || s.uncovered > 0", ""}},
		caughtBy: "TestGapIsToldWhenAQuorumIsHeardAgain",
	},
	{
		rule:     "where nobody can tell what was granted, the quarantine is the longest",
		edits:    []edit{{"roster/plan.go", "case !r.tells(told):", "case false:"}},
		caughtBy: "roster/TestRosterWhatNobodyCanTellIsTheLongestTTLThatIsCovered",
	},
	{
		rule:     "a master that may evict locks does not vote",
		edits:    []edit{{"roster/judge.go", "case r.eviction[p.Master] != \"\":", "case false:"}},
		caughtBy: "TestTimelineAMasterThatMayEvictLocksDoesNotVote",
	},
	{
		rule: "what a master may have evicted is forgotten",
		edits: []edit{
			{"roster/judge.go", "case r.evicted[p.Master]:", "case false:"},
			{"roster/plan.go", "case p.DB == 0 && r.evicted[p.Master]:", "case false:"},
		},
		caughtBy: "TestTimelineAMasterThatMayEvictLocksDoesNotVote",
	},
	{
		rule:     "a dead minority does not keep a master out that was restarted",
		edits:    []edit{{"roster/plan.go", "case told < enough && waited < limits.RestartDelay && cause != ClockJumped:", "case told < enough:"}},
		caughtBy: "TestTimelineAMinorityThatIsDeadDoesNotKeepARestartedMasterOut",
	},
	{
		rule:     "a dead minority does not keep a master out that nobody knows",
		edits:    []edit{{"roster/promotion.go", "(moves || r.unheardFor(p.Master, now) < limits.MaxQuarantine)", "true"}},
		caughtBy: "TestTimelineAMinorityThatIsDeadDoesNotKeepAnUnknownMasterOut",
	},
	{
		rule:     "a master that is needed is not replaced while another is in quarantine",
		edits:    []edit{{"roster/replacement.go", "case stay < needed && r.certified(0) >= needed:", "case false && stay > 0:"}},
		caughtBy: "TestTimelineAMasterThatIsNeededIsNotReplaced",
	},
	{
		rule:     "a clock's jump concerns databases that are being dialled",
		edits:    []edit{{"roster/roster.go", "if p.Master != master {", "if p.Master != master || !s.connected {"}},
		caughtBy: "roster/TestRosterAJumpIsNotMissedByADatabaseThatIsDialledAnew",
	},
	{
		rule:     "a jump that was seen before this process was suspended stays one",
		edits:    []edit{{"roster/roster.go", "return s.jump > 0 && now.Sub(s.jumpedAt) < d", "return s.jump > 0"}},
		caughtBy: "roster/TestRosterAJumpStaysOneWhenThisProcessIsSuspendedLater",
	},
	{
		rule:     "a replaced master does not come back with its old marker",
		edits:    []edit{{"roster/replacement.go", " || m.Joined[i] != r.joined[i] {", " {"}},
		caughtBy: "TestTimelineAReplacedMasterComesBackOnlyWithoutItsMarker",
	},
	{
		rule:     "a replacement does not undo another",
		edits:    []edit{{"roster/roster.go", "together(r.joined, s.marker.Joined)", "slices.MaxFunc([][]string{r.joined, s.marker.Joined}, slices.Compare[[]string])"}},
		caughtBy: "TestTimelineAReplacementDoesNotUndoAnother",
	},
	{
		rule:     "a run that deletes is won by equal votes of a quorum",
		edits:    []edit{{"effect/votes.go", "if verdict := votes.Agree(); verdict != quorum.Won {", "if _, deletions := quorum.Largest(answers, Result.Deleted, r.Same); deletions.Granted > 0 && deletions.Release() == quorum.Won {\n\t\treturn quorum.Won, -1\n\t}\n\tif verdict := votes.Agree(); verdict != quorum.Won {"}},
		caughtBy: "effect/TestData",
	},
	{
		rule:     "what too few masters deleted is put back",
		edits:    []edit{{"effect/due.go", "did == Deleted && wins.Wrote()", "did == Deleted"}},
		caughtBy: "TestElementsThatTooFewMastersHaveArePutBack",
	},
	{
		rule:     "what a quorum deleted goes where it only was kept",
		edits:    []edit{{"effect/due.go", "return SameContent(before, others) && Near(", "return false && Near("}},
		caughtBy: "TestRunAQueueThatTheOthersHavePoppedGoes",
	},
	{
		rule:     "a refusal that nobody knows is no answer to our own commands",
		edits:    []edit{{"replyerrors.go", "case resp.IsError(reply):\n\t\treturn errNotServed", "case resp.IsError(reply) && !resp.CannotServe(reply):\n\t\treturn nil"}},
		caughtBy: "TestARefusalIsNoAnswerToACommand",
	},
	{
		rule:     "a master that could not give a lock back is not asked for one",
		edits:    []edit{{"stream/stream.go", "return !s.refuses && ", "return "}},
		caughtBy: "stream/TestAMasterThatIsProbedInVainIsNotAsked",
	},
	{
		rule:     "a script that has acquired waits for its turn like an acquire",
		edits:    []edit{{"run.go", "if r.script != nil && a.Value.Acquired() {", "if false {"}},
		caughtBy: "TestTimelineAScriptGoesBeforeThoseThatWaitUntilItHasAcquired",
	},
	{
		rule:     "a script that has not acquired so far has its turn all the same",
		edits:    []edit{{"run.go", "	if !r.ReadOnly {", "	if !r.ReadOnly && !r.goesNext() {"}},
		caughtBy: "TestTimelineAScriptThatAcquiresForTheFirstTimeHasItsTurn",
	},
	{
		rule:     "who goes next goes behind who was to go next before",
		edits:    []edit{{"turns.go", "return !w.next })", "return true })"}},
		caughtBy: "TestTurnsOfHoldersComeFirst",
	},
	{
		rule:     "a run that extended is told to who missed it",
		edits:    []edit{{"runsettle.go", "did == effect.Moved && given > 0", "did == effect.Moved && given > 0 && false"}},
		caughtBy: "TestTimelineAScriptThatExtendsReachesWhoMissedIt",
	},
	{
		rule:     "a recognised script tells by its answer whether it did its work",
		edits:    []edit{{"script/trial.go", "return other != r.deleted", "return true"}},
		caughtBy: "script/TestRecognisedScripts",
	},
	{
		rule:     "a script that may delete what its owner does not hold is not recognised",
		edits:    []edit{{"script/trial.go", "if t.deleted || t.key != r.key", "if t.key != r.key"}},
		caughtBy: "script/TestRecognisedScripts",
	},
	{
		rule:     "a script that has escapes in it is not recognised",
		edits:    []edit{{"script/release.go", " || bytes.IndexByte(text, '\\\\') >= 0", ""}},
		caughtBy: "script/TestRecognisedScripts",
	},
	{
		rule:     "a recognised release that was missed is told how long the lock may live",
		edits:    []edit{{"recogniserun.go", "reachAfter(missed.seen, replies[0])", "missed.seen.Reach(time.Now())"}},
		caughtBy: "TestTimelineAMasterThatMissedARecognisedReleaseIsToldOfIt",
	},
	{
		rule:     "a master that is away is told only of what was released",
		edits:    []edit{{"recogniserun.go", "debt:    missed.debt, ", "debt: missed.debt, owedToAbsent: true, "}},
		caughtBy: "TestTimelineARecognisedReleaseThatReleasedNothingIsNotQueued",
	},
	{
		rule:     "a release that deleted, and had to be loaded, is not told that it held nothing",
		edits:    []edit{{"recogniserun.go", "o.Verdict == Lost && r.gaveUp.Load()", "false"}},
		caughtBy: "TestTimelineARecognisedReleaseThatHadToBeLoadedIsNotToldThatItHeldNothing",
	},
	{
		rule:     "a recognised release that is told again spares a later lock",
		edits:    []edit{{"recogniserun.go", "Deliver(missed.debt(i), time.Now(), true)", "Deliver(missed.debt(i), time.Now(), false)"}},
		caughtBy: "TestTimelineARecognisedReleaseThatIsToldAgainSparesALaterInstance",
	},
	{
		rule: "nobody waits where nobody can vote",
		edits: []edit{
			{"prospects.go", "p.Moved.Add(timeout)", "time.Now().Add(timeout)"},
			{"prospects.go", "left <= 0 || l.isHopeless(db)", "left <= 0"},
			{"acquire.go", "turn.giveUp(o)", "_ = turn"},
		},
		caughtBy: "TestTimelineACrowdIsToldAtOnceThatNobodyCanVote",
	},
	{
		rule:     "what was asked before a jump was written down does not count",
		edits:    []edit{{"roster/roster.go", "return !s.rewritten.IsZero() && !s.asked.After(s.rewritten)", "return false"}},
		caughtBy: "roster/TestRosterWhatWasAskedBeforeAJumpWasWrittenDownDoesNotCount",
	},
	{
		rule:     "no epoch begins by what was read long ago",
		edits:    []edit{{"roster/roster.go", "return s.read && now.Sub(s.asked) <= recently", "return s.read"}},
		caughtBy: "roster/TestRosterNoEpochBeginsByWhatWasReadLongAgo",
	},
	{
		rule:     "a longer TTL on record does not begin the wait anew",
		edits:    []edit{{"roster/roster.go", "if !s.read || !s.marker.sameMemory(next) || broken {", "if true {"}},
		caughtBy: "roster/TestRosterALongerTTLOnRecordIsNoOtherMemory",
	},
	{
		rule:     "a replica for a moment has just forgotten",
		edits:    []edit{{"roster/observations.go", "s.since = now // it may have forgotten until now", ""}},
		caughtBy: "roster/TestRosterAReplicaForAMomentHasJustForgotten",
	},
	{
		rule:     "a jump concerns a database that is connected later",
		edits:    []edit{{"roster/roster.go", "o.run == run && o.jump > known.jump", "false"}},
		caughtBy: "roster/TestRosterAJumpIsKnownToADatabaseThatIsConnectedLater",
	},
	{
		rule:     "a newcomer lacks what was granted until others heard of it",
		edits:    []edit{{"roster/plan.go", "heard.After(forgot) {", "false {"}},
		caughtBy: "roster/TestRosterANewcomerLacksWhatWasGrantedUntilOthersHeardOfIt",
	},
	{
		rule:     "nothing counts where who the masters are has just changed",
		edits:    []edit{{"roster/judge.go", "case now.Received.Sub(st.learned) < limits.MasterTimeout:", "case false:"}},
		caughtBy: "roster/TestRosterNothingCountsWhereWhoTheMastersAreHasJustChanged",
	},
}
