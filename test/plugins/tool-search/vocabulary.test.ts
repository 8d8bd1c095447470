// Which words of a query are looked for, by how often tools have them.
import { expect } from 'chai'
import { Vocabulary } from '../../../plugins/tool-search/vocabulary.ts'
import { createReader, queryWords } from '../../../plugins/tool-search/words.ts'

/** Ten thousand tools: all have `order` and `common`, a hundred `rare`, one `single`. */
function manyTools(): Vocabulary {
  const vocabulary = new Vocabulary()
  for (let index = 0; index < 10_000; index += 1) {
    const more = [...(index % 100 === 0 ? ['rare'] : []), ...(index === 7 ? ['single'] : [])]
    vocabulary.count(['order', 'common', 'common', ...more])
  }
  vocabulary.close()
  return vocabulary
}

describe('the words of a query', () => {
  const planned = (...words: string[]) => {
    const { words: chosen, prefixes, misspelt } = manyTools().plan(words)
    return { chosen, prefixes: [...prefixes], misspelt: [...misspelt] }
  }

  it('are looked for from the rarest on, while there is room', () => {
    expect(planned('common', 'rare', 'order', 'single').chosen).to.deep.equal(['single', 'rare'])
    expect(planned('order').chosen, 'what is asked for alone').to.deep.equal(['order'])
    expect(planned('order', 'common').chosen).to.have.lengthOf(1)
  })

  it('are beginnings where something begins so, and misspelt where nothing does', () => {
    expect(planned('ord')).to.deep.equal({ chosen: ['ord'], prefixes: ['ord'], misspelt: [] })
    expect(planned('rar', 'single')).to.deep.equal({ chosen: ['rar', 'single'], prefixes: ['rar'], misspelt: [] })
    expect(planned('singel', 'or', 'x')).to.deep.equal({ chosen: ['singel'], prefixes: [], misspelt: ['singel'] })
    const wrong = ['aaaaa', 'bbbbb', 'ccccc', 'ddddd', 'eeeee']
    expect(planned(...wrong, 'rare').chosen).to.deep.equal(['aaaaa', 'bbbbb', 'ccccc', 'rare'])
  })

  it('are taken apart as names are, without endings and marks, each once', () => {
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
