// A JSON document on stdout, for programs; it may be a terminal that stdout leads to.
import { printableLines } from '../client/text.ts'

/** Indented. JSON.stringify leaves C1 controls and what turns the direction of text as they are. */
export const jsonText = (value: unknown): string => printableLines(JSON.stringify(value, undefined, 2))
