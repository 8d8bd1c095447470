// Tests memory use of `mcp-host report` with a long log; test/cli/report/report.test.ts uses a short one.
import { keepsItsRoom } from '../cli/report/memory-limit.ts'

describe('mcp-host report on 300,000 lines', () => {
  it('uses limited memory', () => {
    keepsItsRoom(300_000)
  })
})
