// Query terms in tool search: term frequency, prefixes, spelling correction and normalisation.
import { expect } from 'chai'
import { nearWords } from '../../../plugins/tool-search/near-words.ts'
import { PostingsWriter, restrict } from '../../../plugins/tool-search/postings.ts'
import { plan, type Vocabulary } from '../../../plugins/tool-search/vocabulary.ts'
import { createReader, queryWords } from '../../../plugins/tool-search/words.ts'
import { createSeededRandom } from '../../support/seeded-random.ts'

/** Ten thousand tools: all have `order` and `common`, a hundred `rare`, one `single`. */
function manyTools(): Vocabulary {
  const writer = new PostingsWriter()
  for (let index = 0; index < 10_000; index += 1) {
    const more = [...(index % 100 === 0 ? ['rare'] : []), ...(index === 7 ? ['single'] : [])]
    writer.add([['order'], ['common', 'common'], more, []])
  }
  return writer.close()
}
const MANY = manyTools()

describe('Query terms', () => {
  const planned = (...words: string[]) => {
    const { words: chosen, prefixes, misspelt } = plan(MANY, words)
    return { chosen, prefixes: [...prefixes], misspelt: [...misspelt] }
  }

  it('are searched from the rarest, within the cost limit', () => {
    expect(planned('common', 'rare', 'order', 'single').chosen).to.deep.equal(['single', 'rare'])
    expect(planned('order').chosen, 'what is asked for alone').to.deep.equal(['order'])
    expect(planned('order', 'common').chosen).to.have.lengthOf(1)
  })

  it('match prefixes if any exist, and misspellings otherwise', () => {
    expect(planned('ord')).to.deep.equal({ chosen: ['ord'], prefixes: ['ord'], misspelt: [] })
    expect(planned('rar', 'single')).to.deep.equal({ chosen: ['rar', 'single'], prefixes: ['rar'], misspelt: [] })
    expect(planned('singel', 'or', 'x')).to.deep.equal({ chosen: ['singel'], prefixes: [], misspelt: ['singel'] })
    const wrong = ['aaaaa', 'bbbbb', 'ccccc', 'ddddd', 'eeeee']
    expect(planned(...wrong, 'rare').chosen).to.deep.equal(['aaaaa', 'bbbbb', 'ccccc', 'rare'])
  })

  it('are split like tool names, stemmed, stripped of accents and unique', () => {
    const read = createReader()
    expect(read('get_HTTPResponse.for-userIds2')).to.deep.equal([
      'get',
      'http',
      'respons',
      'httprespons',
      'for',
      'user',
      'ids2',
      'userids2',
    ])
    expect(queryWords('Refunding the refunds: refunded a Refund')).to.deep.equal(['refund'])
    expect(queryWords('queries query queried')).to.deep.equal(['query'])
    expect(queryWords('Création')).to.deep.equal(queryWords('creation'))
    expect(queryWords('how do I')).to.deep.equal(['how', 'do', 'i'])
    expect(queryWords('?!')).to.deep.equal([])
    expect(queryWords('x'.repeat(512))).to.deep.equal([])
    expect(queryWords(Array.from({ length: 100 }, (_, at) => `w${at}`).join(' '))).to.have.lengthOf(16)
  })
})

describe('Misspelled query terms', () => {
  /** How many letters of one are wrong, by the whole table. */
  function wrongOf(one: string, other: string): number {
    let above = Array.from({ length: one.length + 1 }, (_, at) => at)
    for (const letter of other) {
      const row = [(above[0] ?? 0) + 1]
      for (let at = 1; at <= one.length; at += 1) {
        const changed = (above[at - 1] ?? 0) + (one[at - 1] === letter ? 0 : 1)
        row.push(Math.min((row[at - 1] ?? 0) + 1, (above[at] ?? 0) + 1, changed))
      }
      above = row
    }
    return above.at(-1) ?? 0
  }

  it('match exactly the terms within the edit distance', () => {
    const random = createSeededRandom(3)
    const word = (longest: number) =>
      Array.from({ length: 1 + random.below(longest) }, () => 'abc'[random.below(3)] ?? '').join('')
    let found = 0
    for (let round = 0; round < 60; round += 1) {
      const words = [...new Set(Array.from({ length: 1 + random.below(300) }, () => word(9)))].sort()
      for (let asked = 0; asked < 20; asked += 1) {
        const wanted = word(10)
        const most = 1 + random.below(2)
        const all = words.map((one, at) => [at, wrongOf(wanted, one)] as const).filter(([, wrong]) => wrong <= most)
        expect(nearWords(words, wanted, most), `${wanted} in ${words.join(' ')}`).to.deep.equal(all)
        found += all.length
      }
    }
    expect(found).to.be.greaterThan(1_000)
  })
})

describe('Index of a subset of tools', () => {
  it('equals an index built from these tools only', () => {
    const random = createSeededRandom(5)
    const words = () => Array.from({ length: random.below(6) }, () => `w${random.below(random.below(400) + 1)}`)
    for (let round = 0; round < 200; round += 1) {
      const tools = Array.from({ length: random.below(60) }, () => [words(), words(), words(), words()])
      const kept = Uint8Array.from(tools, () => random.below(2))
      const [whole, alone] = [new PostingsWriter(), new PostingsWriter()]
      for (const [at, fields] of tools.entries()) {
        whole.add(fields)
        if (kept[at] === 1) alone.add(fields)
      }
      expect(restrict(whole.close(), kept)).to.deep.equal(alone.close())
    }
  })
})
