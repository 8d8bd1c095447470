// Preserves JSON numbers that JavaScript cannot represent, such as 64-bit ids.
import { randomUUID } from 'node:crypto'

/** Strings and numbers of a JSON text. A number never begins inside a string. */
const LITERALS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g

const isString = (literal: string) => literal.startsWith('"')

function normalize(literal: string): string {
  const [, sign = '', whole = '', part = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(literal) ?? []
  const digits = `${whole}${part}`.replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return '0'
  return `${sign}${significant}e${Number(exponent) - part.length + digits.length - significant.length}`
}

export const findInexactNumber = (json: string): string | undefined =>
  json.match(LITERALS)?.find(literal => !isString(literal) && normalize(literal) !== normalize(String(Number(literal))))

const MARK = randomUUID()
const MARKED = new RegExp(`"${MARK}([^"]*)"`, 'g')

export const protectNumbers = (json: string): string =>
  json.replace(LITERALS, literal =>
    isString(literal) || JSON.stringify(Number(literal)) === literal ? literal : `"${MARK}${literal}"`,
  )

export const restoreNumbers = (json: string): string => json.replace(MARKED, '$1')
