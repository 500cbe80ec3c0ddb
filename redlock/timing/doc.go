// Package timing says how long the rules of package roster wait. Each wait follows from the limits
// of the configuration and a few constants, so it is decided here alone: no time of day, no state.
//
// Most waits are for one of three things:
//
//   - every lock that may have been forgotten, or that another number of masters granted, has
//     ended (Quarantine, Turn)
//   - every process has read of a change, or must not write by its earlier reading (Hold)
//   - other processes have written down what they alone know (Watch, JumpPatience)
//
// Clocks of masters and processes run apart by Limits.ClockDrift. Most waits that are measured by one
// clock and matter by another are longer by twice that (Apart).
package timing
