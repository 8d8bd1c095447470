// Tests the calculator example: results, error messages and limits.
import { expect } from 'chai'
import fc from 'fast-check'
import { ToolError } from 'mcp-host'
import { calculate } from '../../examples/calculator/calculator.ts'
import { compute } from '../../examples/calculator/compute.ts'
import { callTool, rejectionOf } from './call-tool.ts'

const ask = async (operation: unknown, numbers: unknown) =>
  (await callTool<{ result: number }>(calculate, { operation, numbers } as never)).result

describe('examples/calculator', () => {
  const answers: Array<[operation: string, numbers: number[], result: number]> = [
    ['add', [1, 2, 3.5], 6.5],
    ['subtract', [10, 2, 3], 5],
    ['multiply', [2, 3, 4], 24],
    ['divide', [12, 3, 2], 2],
    ['power', [2, 3, 2], 64],
    ['mean', [1, 2, 6], 3],
    ['median', [9, 1, 5], 5],
    ['median', [9, 1, 5, 6], 5.5],
    ['median', [7], 7],
    ['min', [3, -1, 2], -1],
    ['max', [3, -1, 2], 3],
  ]
  for (const [operation, numbers, result] of answers) {
    it(`returns ${result} for ${operation} ${numbers.join(' ')}`, async () => {
      expect(await ask(operation, numbers)).to.equal(result)
    })
  }

  it('rejects non-finite results with an error for the model', async () => {
    for (const [operation, numbers] of [
      ['divide', [1, 0]],
      ['divide', [0, 0]],
      ['power', [-8, 1 / 3]],
      ['power', [9, 9, 9, 9]],
      ['multiply', [1e308, 10]],
    ]) {
      expect(await rejectionOf(ask(operation, numbers)), `${operation} ${numbers}`).to.be.instanceOf(ToolError)
    }
  })

  it('accepts only its operations and 1 to 1,000 numbers', async () => {
    const stray = [
      ['constructor', [1]],
      ['__proto__', [1]],
      ['add', []],
      ['add', ['1']],
      ['add', [null]],
      ['add', Array(1001).fill(1)],
      ['add', '1'],
    ]
    for (const [operation, numbers] of stray) {
      expect(await rejectionOf(ask(operation, numbers)), JSON.stringify(operation)).to.be.instanceOf(TypeError)
    }
    expect(await ask('add', Array(1000).fill(1))).to.equal(1000)
  })

  it('property: the median has equally many numbers below and above', () => {
    fc.assert(
      fc.property(fc.array(fc.integer(), { minLength: 1 }), numbers => {
        const median = compute('median', numbers)
        const [below, above] = [numbers.filter(one => one < median), numbers.filter(one => one > median)]
        expect(Math.max(below.length, above.length) * 2).to.be.at.most(numbers.length)
      }),
    )
  })
})
