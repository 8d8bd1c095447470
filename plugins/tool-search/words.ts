// Texts as words to index and to look for: names are taken apart (`stock_list`, `stockList`, `stock.list`), and words lose
// their English endings, so that "refunding orders" finds `refund_order`.

/** Longest word; a longer one is no word. */
const MAX_WORD = 40
/** Longest run of letters and digits that is taken apart. */
const MAX_CHUNK = 160
/** Words of a query that count. */
const MAX_WORDS = 16
/** Characters of one text that are looked at. */
const MAX_TEXT = 4_000

/** Words of a query that say nothing of what is wanted. */
const EMPTY: ReadonlySet<string> = new Set(
  (
    'a an and are at be by can could do does for from how i in into is it me my of on or please that the this to want ' +
    'what which with would you your'
  ).split(' '),
)

const CAMEL = /(?<=[\p{Ll}\p{N}])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u
const LATIN = /^[a-z]+$/
const VOWEL = /[aeiouy]/

/** Without what English puts at a word's end. Two forms of a word become one; what it is called matters to nobody. */
function stem(word: string): string {
  if (word.length < 4 || !LATIN.test(word)) return word
  let root = word
  if (/ie[sd]$/.test(root)) root = `${root.slice(0, -3)}y`
  else if (/(?:ss|x|z|ch|sh)es$/.test(root)) root = root.slice(0, -2)
  else if (root.endsWith('s') && !/(?:ss|us|is)$/.test(root)) root = root.slice(0, -1)
  const cut = /^(.+?)(?:ing|(?<!e)ed)$/.exec(root)?.[1]
  if (cut !== undefined && cut.length > 2 && VOWEL.test(cut)) root = cut.replace(/([bdgkmnprt])\1$/, '$1')
  return root.length > 4 ? root.replace(/e$/, '') : root
}

function readChunk(chunk: string): readonly string[] {
  if (chunk === '' || chunk.length > MAX_CHUNK) return []
  const parts = chunk.split(CAMEL)
  // `GitHub` is looked for as one word, too.
  const all = parts.length > 1 ? [...parts, chunk] : parts
  return all.filter(part => part.length <= MAX_WORD).map(part => stem(part.toLowerCase()))
}

const ASCII = /^[\x20-\x7e]*$/
const withoutMarks = (text: string): string =>
  ASCII.test(text)
    ? text
    : text
        .normalize('NFKD')
        .replace(/\p{M}+/gu, '')
        .normalize('NFC')

/** Reads the words of texts, as often as they occur. Texts of one catalogue have the same words over and over. */
export function createReader(): (text: string) => string[] {
  const known = new Map<string, readonly string[]>()
  return text =>
    withoutMarks(text.slice(0, MAX_TEXT))
      .split(/[^\p{L}\p{N}]+/u)
      .flatMap(chunk => {
        const words = known.get(chunk) ?? readChunk(chunk)
        known.set(chunk, words)
        return words
      })
}

/** What a query looks for: each word once. */
export function queryWords(query: string): string[] {
  const words = [...new Set(createReader()(query))]
  const telling = words.filter(word => !EMPTY.has(word))
  return (telling.length > 0 ? telling : words).slice(0, MAX_WORDS)
}
