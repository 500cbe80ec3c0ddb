// Package ballot puts one question to every master at the same moment, and counts.
//
// Poll takes a Question, puts it on every master's stream, and returns the closed
// Ballot. It returns as soon as no missing answer can change the verdict, and at the
// latest after the masters' timeout. A Question holds what the masters are asked and how
// their replies are read. It decides what the answers so far come to (package quorum has
// the rules), and what happens to answers that come late.
//
// A caller may rely on this:
//
//   - Time counts from before the first byte was queued. An answer read after the
//     deadline is late even if the ballot is still open, because this process may have
//     been paused.
//   - Question.Settler gets each master's answer once, together with the final verdict: those
//     among Ballot.Answers before Poll returns, and the others when they come. If there is
//     a Question.Keeper, late answers to a won ballot wait until its Keep returns.
//   - An answer counts only if its master may vote and has on record a TTL as long as
//     the TTL that it grants. Other answers are Discounted: a caller can see what those
//     masters hold, and undo it.
//   - A question that may create a lock is not put to masters that owe an answer about
//     the same keys (package lane). The masters that it is put to owe their answers from
//     before it is sent until the grants are undone or kept.
//   - A large question, or one whose answers may be large, waits until no other one is
//     with the masters, because everything else waits behind it on their streams (Small).
//   - If a request panics, its ballot ends with NoQuorum. Its grants are undone, and the
//     masters owe it nothing (Poll).
//   - Settler, Parse, Vote and Decide run on the streams' readers and must not block.
//     Decide is called with the ballot's lock held, the others with no lock.
//
// Late answers outlive the request. What they need is in one object in memory of its own: the
// question's Settler and, if there is one, its Keeper. Requests that are rare use functions
// (SettleFunc, KeepFunc), and each costs an allocation.
//
// The package knows no commands, and it sends a question once.
package ballot
