"""Verbs of action in other languages than English: finished forms, forms of orders, forms of announcements.

Each table lists, by kind of action, the forms that agents and users really write, not whole conjugations. An underscore
stands for a blank. In German announcements it stands between a verb and the particle that closes its clause:
`sehe_nach` is "ich sehe im Kalender nach".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

Forms = Mapping[str, str]
"""By kind of action (`actions.Kind`): words, parted by blanks."""


@dataclass(frozen=True, slots=True)
class Tongue:
    """The verbs of a language. `done`: claims; `asked`: what users order; `soon`: announcements."""

    done: Forms
    asked: Forms
    soon: Forms


GERMAN = Tongue(
    done=MappingProxyType({
        "search": "gesucht durchsucht recherchiert nachgeschlagen abgefragt abgerufen",
        "read": "gelesen geöffnet geprüft überprüft nachgesehen abgerufen heruntergeladen angesehen "
        "eingesehen geladen",
        "write": "aktualisiert geändert bearbeitet angepasst ersetzt gespeichert umbenannt ergänzt "
        "korrigiert behoben eingetragen eingefügt",
        "create": "erstellt angelegt hinzugefügt eröffnet erzeugt eingefügt",
        "delete": "gelöscht entfernt storniert abgesagt",
        "send": "gesendet verschickt geschickt versendet abgeschickt gepostet weitergeleitet",
        "run": "ausgeführt gestartet getestet installiert kompiliert deployt aufgerufen",
        "book": "gebucht reserviert bestellt erstattet storniert überwiesen verschoben abgesagt "
        "vereinbart",
        "control": "eingeschaltet ausgeschaltet eingestellt",
    }),
    asked=MappingProxyType({
        "search": "such suche durchsuche finde recherchiere schau",
        "read": "lies lese öffne prüfe zeig zeige",
        "write": "ändere aktualisiere speichere ersetze korrigiere setze trag",
        "create": "erstelle erzeuge leg lege",
        "delete": "lösche entferne storniere",
        "send": "sende schick schicke verschicke maile schreib",
        "run": "starte führe teste installiere",
        "book": "buche reserviere bestelle",
        "control": "schalte mach stell",
    }),
    soon=MappingProxyType({
        "search": "suche durchsuche recherchiere suchen durchsuchen recherchieren nachschlagen "
        "schlage_nach suche_heraus suche_raus frage_ab abfragen heraussuchen",
        "read": "lese öffne prüfe lesen öffnen prüfen überprüfen nachsehen abrufen ansehen "
        "nachschauen anschauen sehe_nach schaue_nach schau_nach schaue_an sehe_an rufe_ab "
        "rufe_auf lade_herunter hole_ein gucke_nach sehe_ein lese_ein lese_aus hole_ab hole "
        "prüfe_nach aufrufen laden herunterladen nachlesen rufe",
        "write": "aktualisiere ändere aktualisieren ändern bearbeiten anpassen speichern speichere "
        "ersetzen korrigieren beheben trage_ein passe_an speichere_ab eintragen passe behebe "
        "korrigiere",
        "create": "erstelle erstellen anlegen lege lege_an füge_hinzu hinzufügen erzeuge",
        "delete": "lösche löschen entfernen storniere stornieren sage_ab absagen entferne",
        "send": "sende senden schicke schicken verschicken sende_ab schicke_ab schicke_raus "
        "leite_weiter versende weiterleiten absenden",
        "run": "starte starten ausführen teste testen installieren führe führe_aus fahre_hoch "
        "aufrufen installiere",
        "book": "buche buchen reserviere reservieren bestellen trage_ein bestelle erstatte erstatten",
        "control": "stelle stellen schalte ausschalten einschalten schalte_ein schalte_aus schalte_an stelle_ein "
        "einstellen mache_an mache_aus",
    }),
)  # fmt: skip
FRENCH = Tongue(
    done=MappingProxyType({
        "search": "cherché recherché consulté interrogé",
        "read": "lu ouvert vérifié récupéré téléchargé",
        "write": "modifié mis_à_jour enregistré remplacé corrigé renommé ajouté sauvegardé",
        "create": "créé ouvert ajouté généré",
        "delete": "supprimé effacé annulé",
        "send": "envoyé transmis publié transféré",
        "run": "exécuté lancé testé installé déployé",
        "book": "réservé commandé remboursé annulé planifié",
        "control": "allumé éteint réglé",
    }),
    asked=MappingProxyType({
        "search": "cherche recherche trouve",
        "read": "lis ouvre vérifie montre",
        "write": "modifie corrige enregistre remplace change",
        "create": "crée ajoute",
        "delete": "supprime efface annule",
        "send": "envoie envoyer transmets",
        "run": "exécute lance teste",
        "book": "réserve commande",
        "control": "allume éteins règle",
    }),
    soon=MappingProxyType({
        "search": "chercher rechercher cherche recherche consulte effectue interroge interroger effectuer "
        "cherchant recherchant",
        "read": "lire ouvrir vérifier lis ouvre vérifie consulter regarder récupérer regarde récupère "
        "vérifiant consultant jeter lisant",
        "write": "modifier enregistrer corriger remplacer modifie mets_à_jour mettre_à_jour corrige "
        "enregistre",
        "create": "créer crée ajoute ajouter",
        "delete": "supprimer effacer annuler supprime efface annule",
        "send": "envoyer envoie transmets transférer",
        "run": "exécuter lancer tester exécute lance teste démarrer",
        "book": "réserver commander réserve commande rembourser",
        "control": "allumer éteindre allume éteins règle régler",
    }),
)  # fmt: skip
SPANISH = Tongue(
    done=MappingProxyType({
        "search": "buscado consultado busqué consulté encontrado revisé",
        "read": "leído abierto revisado verificado descargado leí abrí revisé verifiqué",
        "write": "actualizado modificado guardado cambiado corregido editado añadido actualicé "
        "modifiqué guardé cambié corregí",
        "create": "creado generado abierto creé generé añadí agregado agregué",
        "delete": "eliminado borrado cancelado eliminé borré cancelé",
        "send": "enviado publicado reenviado envié publiqué mandado mandé",
        "run": "ejecutado lanzado probado instalado desplegado ejecuté lancé probé",
        "book": "reservado pedido reembolsado comprado programado cancelado reservé cancelé agendado "
        "agendé pedí compré",
        "control": "encendido apagado ajustado encendí apagué",
    }),
    asked=MappingProxyType({
        "search": "busca encuentra consulta",
        "read": "lee abre revisa muestra",
        "write": "cambia actualiza guarda corrige modifica",
        "create": "crea añade agrega",
        "delete": "elimina borra cancela",
        "send": "envía manda escribe",
        "run": "ejecuta lanza prueba",
        "book": "reserva compra pide",
        "control": "enciende apaga ajusta",
    }),
    soon=MappingProxyType({
        "search": "buscar busco consultar consulto buscando consultando",
        "read": "leer abrir revisar verificar leo reviso descargar abro verifico miro mirar comprobar "
        "compruebo revisando leyendo verificando comprobando obtener",
        "write": "actualizar modificar guardar corregir editar actualizo modifico guardo corrijo "
        "cambiar",
        "create": "crear creo añadir agregar añado",
        "delete": "eliminar borrar cancelar elimino borro cancelo",
        "send": "enviar envío mandar mando",
        "run": "ejecutar ejecuto lanzar lanzo ejecutando pruebo probar",
        "book": "reservar pedir reservo programar agendar",
        "control": "encender apagar enciendo apago ajustar",
    }),
)  # fmt: skip
CHINESE = Tongue(
    done=MappingProxyType({
        "search": "搜索 搜寻 查找 检索 查询 搜",
        "read": "读取 阅读 打开 检查 查看 查阅 获取 下载 读",
        "write": "更新 修改 编辑 替换 保存 写入 修复 重命名",
        "create": "创建 新建 添加 建立",
        "delete": "删除 移除 取消 清除",
        "send": "发送 发布 转发 发给 提交",
        "run": "运行 执行 调用 安装 部署 启动 测试",
        "book": "预订 预约 安排 下单 退款 取消",
        "control": "关闭 打开 设置 设为 调到 调至 调为 调高 调低 开启 锁定",
    }),
    asked=MappingProxyType({
        "search": "搜索 查找 搜 查 找",
        "read": "读 打开 检查 看 查看",
        "write": "修改 更新 保存 改",
        "create": "创建 新建 添加",
        "delete": "删除 取消",
        "send": "发送 发邮件 发 通知",
        "run": "运行 执行 测试",
        "book": "预订 订 预约 安排",
        "control": "关 开 打开",
    }),
    soon=MappingProxyType({
        "search": "搜索 查找 检索 查询 搜 查 查阅 查一下 搜一下 统计 检索一下 查查",
        "read": "读取 阅读 打开 检查 查看 查阅 获取 看看 看一下 下载 看一看 调取 拉取 查看一下 核实 确认",
        "write": "更新 修改 编辑 保存 写入 修复 更改 改",
        "create": "创建 新建 添加 生成 建立",
        "delete": "删除 移除 取消 清除",
        "send": "发送 发给 提交 转发 发",
        "run": "运行 执行 调用 启动 跑 执行一下 部署 测试",
        "book": "预订 预约 安排 下单 退款 预定",
        "control": "关闭 打开 设置 调到 调至 调高 调低 开启 锁定 调",
    }),
)  # fmt: skip
JAPANESE = Tongue(
    done=MappingProxyType({
        "search": "検索 調査 照会 調べ 探し",
        "read": "確認 閲覧 取得 読み込み 参照 ダウンロード 読み 開き",
        "write": "更新 変更 編集 修正 保存 書き込み 置換 書き換え 直し",
        "create": "作成 追加 登録 生成 新規作成 作り",
        "delete": "削除 消去 除去 解除 取り消し 消し",
        "send": "送信 投稿 転送 通知 共有 返信 送り",
        "run": "実行 起動 デプロイ インストール テスト ビルド 再起動 走らせ",
        "book": "予約 注文 発注 手配 返金 購入 キャンセル 予定",
        "control": "設定 オン オフ 点灯 消灯 つけ",
    }),
    asked=MappingProxyType({
        "search": "検索して 調べて 探して 検索を",
        "read": "確認して 見て 読んで 開いて 教えて 取得して",
        "write": "更新して 変更して 修正して 保存して 直して 書き換えて",
        "create": "作成して 追加して 登録して 作って 入れて",
        "delete": "削除して 消して 取り消して",
        "send": "送って 送信して 投稿して 転送して 知らせて 返信して",
        "run": "実行して 起動して テストして デプロイして 走らせて",
        "book": "予約して 注文して 手配して 返金して キャンセルして 入れて",
        "control": "つけて 消して 設定して オンに オフに",
    }),
    soon=MappingProxyType({
        "search": "検索 調査 照会 お調べ 調べ 探し お探し",
        "read": "確認 ご確認 閲覧 取得 読み込み 参照 拝見 開き 読み 見て",
        "write": "更新 変更 編集 修正 保存",
        "create": "作成 追加 登録 生成",
        "delete": "削除 消去",
        "send": "送信 投稿 転送 お送り 送り",
        "run": "実行 起動 デプロイ インストール テスト 呼び出し",
        "book": "予約 注文 手配 返金 ご予約 キャンセル",
        "control": "設定 オンに オフに",
    }),
)  # fmt: skip
PORTUGUESE = Tongue(
    done=MappingProxyType({
        "search": "pesquisado pesquisei buscado busquei procurado procurei consultado consultei",
        "read": "lido li aberto abri verificado verifiquei conferido conferi baixado baixei",
        "write": "atualizado atualizei modificado modifiquei alterado alterei editado editei salvo "
        "salvei corrigido corrigi substituído substituí",
        "create": "criado criei adicionado adicionei registrado registrei gerado gerei",
        "delete": "excluído excluí apagado apaguei removido removi deletado deletei cancelado cancelei",
        "send": "enviado enviei mandei publicado publiquei encaminhado encaminhei",
        "run": "executado executei rodei testado testei instalado instalei implantado",
        "book": "reservado reservei agendado agendei marquei marcado reembolsado reembolsei comprado "
        "comprei cancelado cancelei",
        "control": "ligado liguei desligado desliguei ajustado ajustei",
    }),
    asked=MappingProxyType({
        "search": "pesquise busque procure consulte pesquisa procura",
        "read": "leia abra verifique mostre confira",
        "write": "atualize altere corrija salve modifique",
        "create": "crie adicione registre",
        "delete": "exclua apague remova cancele",
        "send": "envie mande escreva",
        "run": "execute teste instale",
        "book": "reserve agende marque compre reembolse",
        "control": "ligue desligue ajuste acenda apague",
    }),
    soon=MappingProxyType({
        "search": "pesquisar buscar procurar consultar pesquiso busco procuro consulto pesquisando "
        "buscando procurando consultando",
        "read": "ler abrir verificar conferir checar leio abro verifico confiro verificando lendo "
        "conferindo checando",
        "write": "atualizar modificar alterar editar salvar corrigir atualizo",
        "create": "criar adicionar crio",
        "delete": "excluir apagar remover cancelar",
        "send": "enviar mandar envio",
        "run": "executar rodar testar executo rodando executando",
        "book": "reservar agendar marcar comprar reservo agendo",
        "control": "ligar desligar ajustar acender",
    }),
)  # fmt: skip
ITALIAN = Tongue(
    done=MappingProxyType({
        "search": "cercato ricercato consultato interrogato",
        "read": "letto aperto controllato verificato esaminato scaricato recuperato",
        "write": "aggiornato modificato salvato corretto sostituito rinominato",
        "create": "creato aggiunto registrato generato inserito",
        "delete": "eliminato cancellato rimosso annullato",
        "send": "inviato mandato spedito pubblicato inoltrato",
        "run": "eseguito avviato lanciato testato installato distribuito",
        "book": "prenotato ordinato rimborsato acquistato programmato annullato",
        "control": "acceso spento regolato impostato",
    }),
    asked=MappingProxyType({
        "search": "cerca trova ricerca consulta",
        "read": "leggi apri controlla verifica mostra mostrami",
        "write": "aggiorna modifica correggi salva cambia",
        "create": "crea aggiungi registra inserisci",
        "delete": "elimina cancella rimuovi annulla",
        "send": "invia manda scrivi spedisci",
        "run": "esegui lancia avvia testa installa",
        "book": "prenota ordina acquista rimborsa fissa",
        "control": "accendi spegni regola imposta",
    }),
    soon=MappingProxyType({
        "search": "cercare ricercare consultare cerco consulto cercando consultando",
        "read": "leggere aprire controllare verificare esaminare guardare leggo apro controllo "
        "verifico controllando verificando leggendo",
        "write": "aggiornare modificare salvare correggere aggiorno modifico",
        "create": "creare aggiungere creo aggiungo",
        "delete": "eliminare cancellare rimuovere annullare",
        "send": "inviare mandare invio mando",
        "run": "eseguire avviare lanciare testare eseguo avvio eseguendo",
        "book": "prenotare ordinare acquistare prenoto",
        "control": "accendere spegnere regolare impostare",
    }),
)  # fmt: skip
