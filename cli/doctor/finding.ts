// What the doctor has to say: one line a check, and how to mend what is wrong.

export interface Finding {
  /** What was looked at, such as `metadata`. */
  readonly check: string
  /** `wrong` makes the doctor exit 1; a `note` may be as its operator wants it. */
  readonly level: 'ok' | 'note' | 'wrong'
  readonly text: string
  readonly fix?: string
}

export const ok = (check: string, text: string): Finding => ({ check, level: 'ok', text })
export const note = (check: string, text: string, fix?: string): Finding => ({
  check,
  level: 'note',
  text,
  ...(fix !== undefined && { fix }),
})
export const wrong = (check: string, text: string, fix: string): Finding => ({ check, level: 'wrong', text, fix })
