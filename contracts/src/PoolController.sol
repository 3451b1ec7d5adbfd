// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";

/// @title The controller of one pool of GPUs: what belongs to it, and what its log says.
/// @notice One deployment per pool. It registers the pool's components and finds them again, keeps the hash of
/// the pool's metadata, and anchors two heads of the ledger's log: of allocations and of licences. Matching and
/// licences are decided in the log; whoever holds the log computes the same heads.
/// @dev Holds no funds. Invariants: `seq` only grows; a component id is registered at most once, and a retired
/// one never comes back.
contract PoolController is AccessControl {
    /// @notice May register and retire components and set the hash of the metadata.
    bytes32 public constant REGISTRAR_ROLE = keccak256("REGISTRAR_ROLE");
    /// @notice May anchor heads.
    bytes32 public constant ANCHOR_ROLE = keccak256("ANCHOR_ROLE");

    /// @notice Position of the market log up to which the heads count. Zero before the first anchor.
    uint64 public seq;
    /// @notice Head over the pool's leases, up to `seq`.
    bytes32 public allocationHead;
    /// @notice Head over the pool's licences and the leases of their seats, up to `seq`.
    bytes32 public licenceHead;
    /// @notice SHA-256 of the pool's metadata. Zero before it was set.
    bytes32 public metadataHash;
    /// @notice What a component is; zero for one that was never registered.
    mapping(bytes32 componentId => bytes32 kind) public kindOf;
    /// @notice Whether a component has left the pool for good.
    mapping(bytes32 componentId => bool isRetired) public isRetired;
    /// @dev In the order of registration; retired ones stay.
    bytes32[] private _components;

    /// @notice A component belongs to the pool from now on.
    event ComponentRegistered(bytes32 indexed componentId, bytes32 indexed kind);
    /// @notice A component has left the pool.
    event ComponentRetired(bytes32 indexed componentId);
    /// @notice The heads of the log at position `seq`.
    event HeadsAnchored(uint64 indexed seq, bytes32 allocationHead, bytes32 licenceHead);
    /// @notice The metadata of the pool has this hash now.
    event MetadataHashSet(bytes32 metadataHash);

    /// @notice A component is registered once.
    error AlreadyRegistered(bytes32 componentId);
    /// @notice The component was never registered, or has been retired.
    error NotRegistered(bytes32 componentId);
    /// @notice A component needs an id and a kind.
    error EmptyComponent();
    /// @notice Heads are anchored in the order of the log.
    error SeqNotIncreasing(uint64 last, uint64 got);

    /// @param admin Grants and revokes the roles.
    /// @param registrar First holder of REGISTRAR_ROLE.
    /// @param anchorer First holder of ANCHOR_ROLE.
    constructor(address admin, address registrar, address anchorer) {
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
        _grantRole(REGISTRAR_ROLE, registrar);
        _grantRole(ANCHOR_ROLE, anchorer);
    }

    /// @notice Register a component of the pool.
    /// @param componentId SHA-256 over its id in the ledger.
    /// @param kind Its kind, as ASCII text padded with zeros.
    function registerComponent(bytes32 componentId, bytes32 kind) external onlyRole(REGISTRAR_ROLE) {
        require(componentId != 0 && kind != 0, EmptyComponent());
        require(kindOf[componentId] == 0, AlreadyRegistered(componentId));
        kindOf[componentId] = kind;
        _components.push(componentId);
        emit ComponentRegistered(componentId, kind);
    }

    /// @notice Take a component out of the pool, for good.
    function retireComponent(bytes32 componentId) external onlyRole(REGISTRAR_ROLE) {
        require(kindOf[componentId] != 0 && !isRetired[componentId], NotRegistered(componentId));
        isRetired[componentId] = true;
        emit ComponentRetired(componentId);
    }

    /// @notice Set the hash of the pool's metadata.
    function setMetadataHash(bytes32 newHash) external onlyRole(REGISTRAR_ROLE) {
        metadataHash = newHash;
        emit MetadataHashSet(newHash);
    }

    /// @notice Anchor the heads of the log at a position. Positions only grow.
    function anchorHeads(uint64 newSeq, bytes32 newAllocationHead, bytes32 newLicenceHead)
        external
        onlyRole(ANCHOR_ROLE)
    {
        require(newSeq > seq, SeqNotIncreasing(seq, newSeq));
        seq = newSeq;
        allocationHead = newAllocationHead;
        licenceHead = newLicenceHead;
        emit HeadsAnchored(newSeq, newAllocationHead, newLicenceHead);
    }

    /// @notice How many components were ever registered, retired ones too.
    function componentCount() external view returns (uint256) {
        return _components.length;
    }

    /// @notice A component by its place in the order of registration.
    function componentAt(uint256 index)
        external
        view
        returns (bytes32 componentId, bytes32 kind, bool retired)
    {
        componentId = _components[index];
        return (componentId, kindOf[componentId], isRetired[componentId]);
    }
}
