// Tests the savings example: results, limits and compilation of its page.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect } from 'chai'
import { testTool } from '../../core/testing.ts'
import { savingsPlan } from '../../examples/apps/savings/savings.ts'

const ROOT = join(import.meta.dirname, '../..')

describe('examples/apps/savings', () => {
  const plan = (monthly: number, rate: number, years: number) => testTool(savingsPlan, { monthly, rate, years })

  it('sums deposits and interest', async () => {
    const { structured, text } = await plan(100, 12, 2)
    expect(structured).to.deep.equal({
      currency: 'EUR',
      years: [
        { year: 1, paid: 1200, total: 1268.25 },
        { year: 2, paid: 2400, total: 2697.35 },
      ],
    })
    expect(text).to.equal('Savings after 2 years: €2,697.35, of which €2,400.00 are deposits.')
  })

  it('rejects amounts, rates and periods out of range', async () => {
    for (const [monthly, rate, years] of [
      [1, 1, 61],
      [1, 51, 1],
      [-1, 1, 1],
      [1, 1, 1.5],
    ] as const) {
      expect((await plan(monthly, rate, years)).isError, `${monthly} ${rate} ${years}`).to.equal(true)
    }
  })

  it('has a page that compiles', () => {
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    const project = join(ROOT, 'examples/apps/savings/page')
    const { status, stdout } = spawnSync(process.execPath, [tsc, '--noEmit', '-p', project], { encoding: 'utf8' })
    expect([status, stdout]).to.deep.equal([0, ''])
  })
})
