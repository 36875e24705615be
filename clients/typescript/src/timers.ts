/** The longest time that a timer can be set for, milliseconds: one for longer, `Infinity` too, is over at once. */
export const LONGEST_TIMER = 2_147_483_647
