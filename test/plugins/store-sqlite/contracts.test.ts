// The store contracts against one SQLite file, with one thread per node and a new file per check.
import { storeContract } from '../../../core/testing.ts'
import { serviceContract } from '../../support/contracts/index.ts'
import { describeContracts } from '../../support/describe-contracts.ts'
import { compareWithModel } from '../../support/store-model.ts'
import { closeFiles, hasSqlite, newFile, type OpenedFile, openFile } from './support/sqlite-files.ts'

const onFile = <Service>(serviceOf: (file: OpenedFile) => Service) => ({
  shared: true,
  async open(count: number) {
    const file = newFile()
    const nodes = await Promise.all(Array.from({ length: count }, () => openFile(file)))
    return {
      nodes: nodes.map(serviceOf),
      close: async () => void (await Promise.all(nodes.map(({ writer }) => writer.close()))),
    }
  },
})

const contracts = {
  'Store contract in SQLite': storeContract(
    'store',
    onFile(({ store }) => store),
  ),
  'Session store in SQLite': serviceContract(
    'sessionStore',
    onFile(({ sessions }) => sessions),
  ),
  'Event store in SQLite': serviceContract(
    'eventStore',
    onFile(({ events }) => events),
  ),
  'Grant store in SQLite': serviceContract(
    'grantStore',
    onFile(({ grants }) => grants),
  ),
  'Task store in SQLite': serviceContract(
    'taskStore',
    onFile(({ tasks }) => tasks),
  ),
}

if (hasSqlite) {
  describeContracts(contracts, { after: closeFiles, atOnce: 4 })
  describe('Store in SQLite', () => {
    after(closeFiles)

    it('gives the results of the model for random transactions', async () => {
      const { store } = await openFile(newFile())
      await compareWithModel(store, 30)
    })
  })
}
