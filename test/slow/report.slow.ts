// `mcp-host report` over a long log: test/cli/report/report.test.ts has a short one.
import { keepsItsRoom } from '../cli/report/keeps-its-room.ts'

describe('a report on 300,000 lines', () => {
  it('keeps its room', function () {
    this.timeout(300_000)
    keepsItsRoom(300_000)
  })
})
