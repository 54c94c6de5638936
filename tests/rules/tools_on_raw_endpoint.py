FIRES = {}
SILENT = {}
