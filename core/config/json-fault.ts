// Finds where a text stops being JSON. JSON.parse says so only in some versions of Node, and quotes the text around,
// which may hold a secret. For read-document.ts, once JSON.parse has refused.

export interface Fault {
  readonly offset: number
  readonly expected: string
}

const SPACE = /[\t\n\r ]*/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids exactly these in a string.
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y
const SCALAR = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.])/y

/** The first fault, or undefined when the text is JSON. */
export function findJsonFault(source: string): Fault | undefined {
  const after = (pattern: RegExp, at: number): number | undefined => {
    pattern.lastIndex = at
    return pattern.test(source) ? pattern.lastIndex : undefined
  }
  const space = (at: number): number => after(SPACE, at) ?? at
  const fault = (offset: number, expected: string): Fault => ({ offset, expected })

  /** The offset behind a value, or the fault in it. */
  function value(at: number): number | Fault {
    if (source[at] === '{') return entries(at, '}', '"key": value', entry)
    if (source[at] === '[') return entries(at, ']', 'a value', value)
    return (
      after(STRING, at) ?? after(SCALAR, at) ?? fault(at, 'a value: string, number, object, list, true, false or null')
    )
  }

  function entry(at: number): number | Fault {
    const key = after(STRING, at)
    if (key === undefined) return fault(at, 'a key in double quotes')
    const colon = space(key)
    return source[colon] === ':' ? value(space(colon + 1)) : fault(colon, "':'")
  }

  function entries(open: number, close: string, what: string, read: (at: number) => number | Fault): number | Fault {
    let at = space(open + 1)
    if (source[at] === close) return at + 1
    for (;;) {
      const end = read(at)
      if (typeof end !== 'number') return end
      at = space(end)
      if (source[at] === close) return at + 1
      if (source[at] !== ',') return fault(at, `',' or '${close}'`)
      at = space(at + 1)
      if (source[at] === close) return fault(at, `${what}, not '${close}' after ','`)
    }
  }

  const end = value(space(0))
  if (typeof end !== 'number') return end
  return space(end) < source.length ? fault(space(end), 'nothing more') : undefined
}
